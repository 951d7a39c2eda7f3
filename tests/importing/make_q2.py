"""Make the table of django-q2, and tell when its scheduler would run what is in it."""

from datetime import datetime, timedelta
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

from tests.importing.maker import BEGIN, MONTH, YEAR, configured, dumped, folder_given, runs_of, write

DUE = datetime.fromisoformat("2026-03-03T06:30:15.250000+00:00")
KINDS: dict[str, tuple[dict[str, Any], timedelta]] = {
    "minutes": ({"schedule_type": "I", "minutes": 45}, MONTH),
    "hourly": ({"schedule_type": "H"}, MONTH),
    "daily": ({"schedule_type": "D"}, YEAR),
    "weekly": ({"schedule_type": "W"}, YEAR),
    "monthly": ({"schedule_type": "M"}, YEAR),
    "bimonthly": ({"schedule_type": "BM"}, YEAR),
    "quarterly": ({"schedule_type": "Q", "next_run": DUE + timedelta(days=17)}, YEAR),
    "yearly": ({"schedule_type": "Y"}, YEAR),
    "later": ({"schedule_type": "D", "next_run": DUE + timedelta(days=10)}, MONTH),
}
CRONS = {
    "cron": ("30 2 * * *", YEAR),
    "cron both days": ("0 5 1,15 * 1", YEAR),
    "cron starred day": ("0 5 */9 * 1", YEAR),
    "cron seconds": ("0 12 * * 1-5 30", MONTH),
    "cron quarters": ("*/15 8-17 * * 1-5", MONTH),
}
OTHERS: dict[str, dict[str, Any]] = {
    "once": {"schedule_type": "O"},
    "once passed": {"schedule_type": "O", "next_run": BEGIN - timedelta(days=1)},
    "done": {"schedule_type": "D", "repeats": 0},
    "three more": {"schedule_type": "D", "repeats": 3},
    "fortnight": {"schedule_type": "BW"},
    "the 31st": {"schedule_type": "M", "next_run": datetime.fromisoformat("2026-03-31T10:00:00+00:00")},
    "near midnight": {"schedule_type": "M", "next_run": datetime.fromisoformat("2026-03-15T23:30:00+00:00")},
    "bad cron": {"schedule_type": "C", "cron": "0 5 * * 6-2"},
    "by place": {"schedule_type": "D", "args": "7, 'north'"},
    "one argument": {"schedule_type": "D", "args": "7"},
    "by name": {"schedule_type": "D", "kwargs": "days=7, to='north'"},
    "a dict": {"schedule_type": "D", "kwargs": "{'days': 7, 'q_options': {'timeout': 5}}"},
    "no literal": {"schedule_type": "D", "args": "__import__('os').system('touch owned')"},
    "no keywords": {"schedule_type": "D", "kwargs": "days: 7"},
    "a call": {"schedule_type": "D", "kwargs": "days=print(1)"},
    "more": {"schedule_type": "D", "hook": "shop.hooks.done", "cluster": "slow", "intended_date_kwarg": "to"},
    "unknown": {"schedule_type": "D", "func": "shop.tasks.unknown"},
}


def make_rows() -> None:
    from django_q.models import Schedule

    usual = {"func": "shop.tasks.digest", "next_run": DUE}
    for name, (columns, _) in KINDS.items():
        Schedule.objects.create(name=name, **{**usual, **columns})
    for name, (text, _) in CRONS.items():
        Schedule.objects.create(name=name, schedule_type="C", cron=text, **usual)
    for name, columns in OTHERS.items():
        if columns["schedule_type"] != "C":
            Schedule.objects.create(name=name, **{**usual, **columns})
    Schedule.objects.bulk_create([Schedule(name="bad cron", **{**usual, **OTHERS["bad cron"]})])
    Schedule.objects.update(repeats=-1)
    for name, columns in OTHERS.items():
        Schedule.objects.filter(name=name).update(repeats=columns.get("repeats", -1))
    Schedule.objects.create(func="shop.tasks.digest", next_run=DUE, schedule_type="D", repeats=-1)


def runs(name: str, span: timedelta) -> dict[str, Any]:
    """Tell when django-q2 would run a row: at its next run, and at what it calculates from each run."""
    from django_q import models
    from django_q.utils import localtime

    row = models.Schedule.objects.get(name=name)

    def following(at: datetime) -> datetime:
        if at == BEGIN and row.schedule_type != "C":
            first: datetime = row.next_run
            return first
        with mock.patch.object(models, "localtime", lambda value=None: localtime(value or at)):
            found: datetime = row.calculate_next_run(at)
        return found

    return runs_of(following, span)


def main() -> None:
    folder = folder_given()
    path = configured(folder, "django_q", Q_CLUSTER={"name": "default", "orm": "default"})
    with mock.patch("django_q.models.localtime", return_value=BEGIN.astimezone(ZoneInfo("Europe/Berlin"))):
        make_rows()
    found = {name: runs(name, span) for name, (_, span) in [*KINDS.items(), *CRONS.items()]}
    write(folder, "django-q2", dumped(path, "django_q_schedule"), found)


if __name__ == "__main__":
    main()
