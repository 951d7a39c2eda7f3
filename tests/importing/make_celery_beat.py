"""Make the tables of django-celery-beat, and tell when Celery's beat would run what is in them."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.importing.maker import BEGIN, MONTH, YEAR, configured, dumped, folder_given, runs_of, write

CRONTABS: dict[str, tuple[str, str, timedelta]] = {
    "nightly": ("30 2 * * *", "Europe/Berlin", YEAR),
    "nightly in UTC": ("30 2 * * *", "UTC", MONTH),
    "hourly": ("0 * * * *", "Europe/Berlin", MONTH),
    "quarters": ("*/15 9-17 * * 1-5", "America/New_York", MONTH),
    "long weekend": ("0 2 * * fri-mon", "Asia/Kolkata", MONTH),
    "every second weekday": ("0 2 * * */2", "UTC", MONTH),
    "first saturday": ("0 22 1-7 * sat", "UTC", YEAR),
    "second and third monday": ("5 1 8-21 * mon", "Australia/Lord_Howe", YEAR),
    "odd wednesdays": ("15 3 */2 * wed", "UTC", YEAR),
    "mondays": ("0 6 1-31 * mon", "Europe/London", YEAR),
    "sunday the first": ("0 0 1 * sun", "UTC", YEAR),
    "winter": ("0 12 15 11-2 *", "UTC", YEAR),
    "last days": ("0 23 29-31 * *", "UTC", YEAR),
    "evening hours": ("0 22-2 * * *", "UTC", MONTH),
    "by name": ("0 8 * jan-jun Sunday,wed", "UTC", YEAR),
}
NEVER = {"sunday as seven": "0 2 * * 7", "sunday both ways": "0 2 * * 0,7", "list of a form": "0 2 * * [1, 2]"}
REFUSED = {"friday the 13th": "0 0 13 * 5", "no hour": "0 25 * * *"}
INTERVALS = (
    (90, "minutes", MONTH),
    (1, "days", MONTH),
    (10, "seconds", timedelta(hours=1)),
    (7, "hours", MONTH),
    (400, "seconds", MONTH),
)
LAST_RUN = BEGIN - timedelta(days=11, minutes=23)


def crontab_row(text: str, zone: str) -> Any:
    from django_celery_beat.models import CrontabSchedule

    minute, hour, day, month, weekday = text.split(" ", 4)
    fields = {"day_of_month": day, "month_of_year": month, "day_of_week": weekday}
    return CrontabSchedule.objects.create(minute=minute, hour=hour, timezone=ZoneInfo(zone), **fields)


def task(name: str, **columns: Any) -> None:
    from django_celery_beat.models import PeriodicTask

    columns = {"task": "shop.tasks.digest", "last_run_at": LAST_RUN, **columns}
    PeriodicTask.objects.create(name=name, **columns)


def make_rows() -> None:
    from django_celery_beat.models import ClockedSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

    for name, (text, zone, _) in CRONTABS.items():
        task(name, crontab=crontab_row(text, zone))
    for name, text in (NEVER | REFUSED).items():
        task(name, crontab=crontab_row(text, "UTC"))
    shared = crontab_row("0 7 * * *", "UTC")
    task("shared one", crontab=shared, enabled=False)
    task("shared two", crontab=shared, queue="mail", priority=3, headers='{"x": 1}', description="two on one row")
    for every, period, _ in INTERVALS:
        task(f"every {every} {period}", interval=IntervalSchedule.objects.create(every=every, period=period))
    task("too often", interval=IntervalSchedule.objects.create(every=50, period="microseconds"))
    sunrise = SolarSchedule.objects.create(event="sunrise", latitude="-37.81", longitude="144.96")
    task("sunrise", solar=sunrise)
    task("dusk", solar=SolarSchedule.objects.create(event="dusk_civil", latitude="69.6", longitude="18.9"))
    task("two kinds", solar=sunrise)
    PeriodicTask.objects.filter(name="two kinds").update(interval=IntervalSchedule.objects.first())
    for day, at in (("tomorrow", BEGIN + timedelta(days=1)), ("yesterday", BEGIN - timedelta(days=1))):
        for count in (0, 1):
            for enabled in (True, False):
                clocked = ClockedSchedule.objects.create(clocked_time=at)
                name = f"{day} {count} {'on' if enabled else 'off'}"
                task(name, clocked=clocked, one_off=True, enabled=enabled, total_run_count=count, last_run_at=None)
    make_arguments(shared)
    task("starts", crontab=shared, start_time=BEGIN + timedelta(days=3))
    task("started", crontab=crontab_row("0 15 * * *", "UTC"), start_time=BEGIN - timedelta(minutes=2), last_run_at=None)
    task("ends", crontab=shared, expires=BEGIN + timedelta(days=3))
    task("ended", crontab=shared, expires=BEGIN - timedelta(days=3))
    task("discarded", crontab=shared, expire_seconds=120)
    task("once a day", crontab=shared, one_off=True)
    task("Mail/north", crontab=shared)
    task("celery.backend_cleanup", task="celery.backend_cleanup", crontab=shared)
    task("unknown", task="shop.tasks.unknown", crontab=shared)


def make_arguments(schedule: Any) -> None:
    """Write what people write into the fields of arguments; some of it was never JSON."""
    texts = {
        "by place": ('[3, "x"]', "{}"), "none": ("[None]", "{}"), "tuple": ("(1,)", "{}"), "object": ('{"a": 1}', "{}"),
        "empty": ("", ""), "null": ("null", "null"), "repr": ("[]", "{'x': 1}"), "empty list": ("[]", "[]"),
        "not a number": ("[]", '{"days": NaN}'), "twice": ("[]", '{"days": 1, "days": 2}'),
        "by name": ("[]", '{"days": 7}'), "both": ("[1]", '{"days": 7}'), "too many": ("[1, 2, 3]", "{}"),
        "other name": ("[]", '{"dayz": 7}'),
    }  # fmt: skip
    for name, (args, kwargs) in texts.items():
        task(f"args {name}", crontab=schedule, args=args, kwargs=kwargs)


def crontab_runs(text: str, zone: str, span: timedelta) -> dict[str, Any]:
    """Tell when Celery would run a crontab, by its own estimate after each run, a moment late as beat is."""
    from django_celery_beat.tzcrontab import TzAwareCrontab

    minute, hour, day, month, weekday = text.split(" ", 4)
    fields = {"day_of_month": day, "month_of_year": month, "day_of_week": weekday}
    crontab = TzAwareCrontab(minute=minute, hour=hour, tz=ZoneInfo(zone), **fields)

    def following(at: datetime) -> datetime:
        start, delta, _ = crontab.remaining_delta(
            (at + timedelta(milliseconds=50)).astimezone(crontab.tz), tz=crontab.tz
        )
        found: datetime = start + delta
        return found

    return runs_of(following, span)


def interval_runs(every: int, period: str, span: timedelta) -> dict[str, Any]:
    """Tell when Celery would run an interval that had run on time until BEGIN, by its own estimate after each run."""
    from django_celery_beat.models import IntervalSchedule

    schedule = IntervalSchedule(every=every, period=period).schedule
    length = timedelta(**{period: every})
    behind = LAST_RUN + ((BEGIN - LAST_RUN) // length) * length

    def following(at: datetime) -> datetime:
        last = behind if at == BEGIN else at
        schedule.nowfun = lambda: last
        found: datetime = last + schedule.remaining_estimate(last)
        return found

    return runs_of(following, span)


def main() -> None:
    folder = folder_given()
    path = configured(folder, "django_celery_beat")
    make_rows()
    runs = {name: crontab_runs(*crontab) for name, crontab in CRONTABS.items()}
    runs |= {f"every {every} {period}": interval_runs(every, period, span) for every, period, span in INTERVALS}
    write(folder, "django-celery-beat", dumped(path, "django_celery_beat_"), runs)


if __name__ == "__main__":
    main()
