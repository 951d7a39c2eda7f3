"""Make a beat_schedule of Celery, and tell when its beat would run what is in it."""

from datetime import datetime, timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab, schedule

from tests.importing.maker import MONTH, YEAR, folder_given, runs_of, write

app = Celery("shop", broker="memory://")
app.conf.timezone = "Europe/Berlin"
CRONTABS: dict[str, tuple[dict[str, Any], timedelta]] = {
    "nightly": ({"minute": 30, "hour": 2}, YEAR),
    "list": ({"minute": 0, "hour": [8, 20], "day_of_week": [1, 2]}, MONTH),
    "set": ({"minute": {0, 30}, "hour": 9}, MONTH),
    "word": ({"minute": 0, "hour": 11, "day_of_week": "Sunday"}, YEAR),
    "left out": ({"hour": 11, "day_of_week": "mon"}, MONTH),
    "first saturday": ({"minute": 0, "hour": 22, "day_of_month": "1-7", "day_of_week": "sat"}, YEAR),
    "wraps": ({"minute": "25-5", "hour": "6-0", "month_of_year": "11-3"}, timedelta(days=3)),
    "steps": ({"minute": "*/7", "hour": "8-18/3", "day_of_month": "2-30/2"}, MONTH),
    "odd days": ({"minute": 0, "hour": 4, "day_of_month": "*/2", "day_of_week": "wed"}, YEAR),
}
app.conf.beat_schedule = {
    **{name: {"task": "digest", "schedule": crontab(app=app, **fields)} for name, (fields, _) in CRONTABS.items()},
    "seconds": {"task": "digest", "schedule": 30.0},
    "timedelta": {"task": "digest", "schedule": timedelta(hours=2)},
    "schedule": {"task": "digest", "schedule": schedule(timedelta(days=1))},
    "friday the 13th": {"task": "digest", "schedule": crontab(minute=0, hour=0, day_of_month=13, day_of_week="fri")},
}


def crontab_runs(given: crontab, span: timedelta) -> dict[str, Any]:
    def following(at: datetime) -> datetime:
        start, delta, _ = given.remaining_delta((at + timedelta(milliseconds=50)).astimezone(app.timezone))
        found: datetime = start + delta
        return found

    return runs_of(following, span)


def main() -> None:
    schedules = app.conf.beat_schedule
    runs = {name: crontab_runs(schedules[name]["schedule"], span) for name, (_, span) in CRONTABS.items()}
    write(folder_given(), "celery", "", runs)


if __name__ == "__main__":
    main()
