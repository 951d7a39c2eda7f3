"""Make the table of django-apscheduler, with good jobs and bad pickles, and tell when APScheduler would run those."""

import pickle
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.importing.maker import BEGIN, MONTH, YEAR, configured, dumped, folder_given, runs_of, write

START = BEGIN - timedelta(days=5, minutes=7)
BERLIN = "Europe/Berlin"
CRONS: dict[str, tuple[dict[str, Any], timedelta]] = {
    "nightly": ({"hour": 2, "minute": 30, "timezone": BERLIN}, YEAR),
    "weekdays": ({"day_of_week": "mon-fri", "hour": "8-18/2", "timezone": "UTC"}, MONTH),
    "quarters": ({"minute": "*/15", "hour": "9-17", "timezone": "Asia/Kolkata"}, MONTH),
    "seconds": ({"hour": 12, "minute": 0, "second": "*/20", "timezone": "UTC"}, MONTH),
    "first monday": ({"day": "1st mon", "hour": 5, "timezone": "UTC"}, YEAR),
    "last friday": ({"day": "last fri", "hour": 5, "timezone": "UTC"}, YEAR),
    "last day": ({"day": "last", "hour": 23, "timezone": "America/New_York"}, YEAR),
    "both days": ({"day": "8-14", "day_of_week": "tue", "hour": 6, "timezone": "UTC"}, YEAR),
    "sunday": ({"day_of_week": 6, "timezone": "UTC"}, YEAR),
    "odd months": ({"month": "*/2", "day": 15, "timezone": "UTC"}, YEAR),
    "bounded": (
        {"hour": 4, "start_date": BEGIN + timedelta(days=9), "end_date": BEGIN + timedelta(days=20), "timezone": "UTC"},
        MONTH,
    ),
}


class Owned:
    """What a bad pickle calls."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch owned",)


def jobs() -> dict[str, Any]:
    """Return the triggers of the good jobs, by their ids."""
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.date import DateTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    crons = {name: CronTrigger(**fields) for name, (fields, _) in CRONS.items()}
    return crons | {
        "every 90 minutes": IntervalTrigger(minutes=90, start_date=START, timezone=ZoneInfo(BERLIN)),
        "every day": IntervalTrigger(days=1, start_date=START, timezone=ZoneInfo("UTC")),
        "once": DateTrigger(BEGIN + timedelta(days=1)),
    }


def others() -> dict[str, Any]:
    """Return triggers of which no schedule means the same, or whose time has passed."""
    from apscheduler.triggers.combining import OrTrigger
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.date import DateTrigger

    return {
        "friday the 13th": CronTrigger(day=13, day_of_week="fri", timezone="UTC"),
        "week": CronTrigger(week="*/2", day_of_week="mon", timezone="UTC"),
        "year": CronTrigger(year=2030, timezone="UTC"),
        "either": OrTrigger([CronTrigger(hour=1, timezone="UTC"), CronTrigger(hour=2, timezone="UTC")]),
        "passed": DateTrigger(BEGIN - timedelta(days=1)),
    }


def state(name: str, trigger: Any, **more: Any) -> dict[str, Any]:
    """Return the state of a job, as `Job.__getstate__` of APScheduler 3.11 does."""
    return {
        "version": 1, "id": name, "func": "shop.tasks:digest", "trigger": trigger, "executor": "default", "args": (),
        "kwargs": {}, "name": "digest", "misfire_grace_time": 1, "coalesce": True, "max_instances": 1,
        "next_run_time": following(trigger, BEGIN), **more,
    }  # fmt: skip


def following(trigger: Any, at: datetime) -> datetime | None:
    """Return the first run after an instant."""
    found: datetime | None = trigger.get_next_fire_time(None, at + timedelta(microseconds=1))
    return found


def save(name: str, data: bytes, next_run: datetime | None = None) -> None:
    from django_apscheduler.models import DjangoJob

    DjangoJob.objects.create(id=name, next_run_time=next_run, job_state=data)


def make_rows() -> None:
    import decimal

    for name, trigger in (jobs() | others()).items():
        made = state(name, trigger)
        save(name, pickle.dumps(made, pickle.HIGHEST_PROTOCOL), made["next_run_time"])
    trigger = jobs()["nightly"]
    given = {"args": (7,), "kwargs": {"to": "north"}, "max_instances": 3, "misfire_grace_time": 300, "executor": "slow"}
    save("with options", pickle.dumps(state("with options", trigger, **given)), following(trigger, BEGIN))
    save("paused", pickle.dumps(state("paused", trigger, next_run_time=None)))
    save("unknown", pickle.dumps(state("unknown", trigger, func="shop.tasks:unknown")), following(trigger, BEGIN))
    good = pickle.dumps(state("half", trigger))
    save("half", good[: len(good) // 2])
    save("empty", b"")
    save("no job", pickle.dumps([1, 2]))
    save("missing module", good.replace(b"apscheduler.triggers.cron", b"apscheduler.triggers.crox"))
    save("other class", pickle.dumps(state("other class", trigger, kwargs={"days": decimal.Decimal(1)})))
    save("owned", pickle.dumps(state("owned", trigger, args=(Owned(),))))


def chained(trigger: Any, span: timedelta) -> dict[str, Any]:
    """Tell when APScheduler would run a job, each run by the one before."""
    first = following(trigger, BEGIN)

    def after(at: datetime) -> datetime | None:
        if at == BEGIN:
            return first
        found: datetime | None = trigger.get_next_fire_time(at, at)
        return found

    return runs_of(after, span)


def main() -> None:
    folder = folder_given()
    path = configured(folder, "django_apscheduler")
    make_rows()
    spans = {name: span for name, (_, span) in CRONS.items()}
    runs = {name: chained(trigger, spans.get(name, MONTH)) for name, trigger in jobs().items() if name != "once"}
    write(folder, "django-apscheduler", dumped(path, "django_apscheduler_djangojob"), runs)


if __name__ == "__main__":
    main()
