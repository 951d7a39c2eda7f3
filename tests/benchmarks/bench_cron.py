"""`next_after` of cron schedules; the table of all kinds is printed by `python -m tests.benchmarks.bench_schedules`."""

from scheduler.schedules import Cron
from tests.benchmarks.bench_schedules import SCHEDULES, microseconds_per_slot
from tests.benchmarks.figures import Figure


def measure() -> list[Figure]:
    costs = {
        schedule.to_text(): microseconds_per_slot(schedule) for schedule in SCHEDULES if isinstance(schedule, Cron)
    }
    worst = max(costs, key=lambda text: costs[text])
    typical = costs[Cron("0 9 * * 1-5", timezone="Europe/Berlin").to_text()]
    return [
        Figure("cron next_after, 0 9 * * 1-5", typical, "µs", 60.0),
        Figure("cron next_after, the slowest", costs[worst], "µs", 60.0, note=worst),
    ]
