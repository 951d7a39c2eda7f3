"""What `next_after` costs, per kind: run by hand with `python -m tests.benchmarks.bench_schedules`."""

from datetime import UTC, datetime, timedelta
from timeit import repeat

from scheduler.schedules import Cron, DailyAt, Every, Monthly, Once, Schedule, Weekly

START = datetime(2026, 1, 15, 11, 47, 12, tzinfo=UTC)
YEARS = timedelta(days=3653)
ROUNDS = 2000

SCHEDULES: tuple[Schedule, ...] = (
    Every(minutes=5, anchor=START),
    Once(START + YEARS),
    DailyAt(3, timezone="Europe/Berlin"),
    Weekly(days=["mon", "fri"], hour=9, timezone="Europe/Berlin"),
    Monthly(-1, 3, timezone="Europe/Berlin"),
    Cron("* * * * *", timezone="Europe/Berlin"),
    Cron("*/15 * * * *", timezone="Europe/Berlin"),
    Cron("0 9 * * 1-5", timezone="Europe/Berlin"),
    Cron("0 3 1 1 *", timezone="Europe/Berlin"),
    Cron("0 9 29 2 *", timezone="Europe/Berlin"),
    Cron("* * * * * *", timezone="Europe/Berlin"),
)


def microseconds_per_slot(schedule: Schedule) -> float:
    """The best of three walks along the schedule, in microseconds a step."""

    def walk() -> None:
        at: datetime | None = START
        for _ in range(ROUNDS):
            at = schedule.next_after(at or START)

    return min(repeat(walk, number=1, repeat=3)) / ROUNDS * 1e6


def count_milliseconds(schedule: Schedule) -> float:
    """Counting the slots of ten years, in milliseconds, best of three."""
    return min(repeat(lambda: schedule.count_between(START, START + YEARS), number=1, repeat=3)) * 1e3


def main() -> None:
    print(f"{'schedule':48} {'next_after':>12} {'count of 10 years':>20}")
    for schedule in SCHEDULES:
        step, count = microseconds_per_slot(schedule), count_milliseconds(schedule)
        print(f"{schedule.to_text():48} {step:9.1f} µs {count:17.2f} ms")


if __name__ == "__main__":
    main()
