"""Every way to serve: every slot of every job once in the ledger, and nothing held after the stop."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from .ledger import Ledger, Line, complains, is_alive, manage, noise, now, serve
from .servers import pids_of_workers, wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

TASKS: dict[str, dict[str, Any]] = {
    "second": {"schedule": "every 1s"},
    "other": {"schedule": "every 1s", "kind": "async", "seconds": 0.3},
    "slow": {"schedule": "every 2s", "seconds": 1.2},
    "overlapping": {"schedule": "every 1s", "seconds": 2.5},
}
INTERVALS = {"second": 1.0, "other": 1.0, "slow": 2.0, "overlapping": 1.0}
SERVE_SECONDS = 8
CYCLES = 2


@pytest.mark.parametrize(
    ("kind", "workers", "args"),
    [
        ("runserver", 1, []),
        ("runserver", 1, ["--noreload"]),
        ("gunicorn", 3, []),
        ("gunicorn", 3, ["--preload"]),
        ("uvicorn", 2, []),
        ("run_scheduler", 1, []),
    ],
)
def test_every_slot_of_every_job_is_once_in_the_ledger(
    kind: str, workers: int, args: list[str], ledger_of: LedgerOf
) -> None:
    ledger = ledger_of(TASKS)
    with serve(ledger, kind, *args, workers=workers) as server:
        wait_until(lambda: len(ledger.starts("second")) >= SERVE_SECONDS, what=f"{SERVE_SECONDS} runs")
        assert ledger.instances() == workers
        serving = pids_of_workers(server)
        stopped_at = now()
        server.stop()
        wait_until(lambda: not any(map(is_alive, serving)), what="all workers end")
    assert {line.pid for line in ledger.starts()} <= set(serving)
    ledger.check_once()
    ledger.check_one_at_a_time()
    ledger.check_no_slot_missing(INTERVALS, stopped_at - soon())
    assert {row.status for row in ledger.rows()} <= {"succeeded", "skipped", "running"}


@pytest.mark.parametrize(
    ("kind", "workers", "args", "number"),
    [
        ("gunicorn", 2, [], signal.SIGTERM),
        ("gunicorn", 2, ["--preload"], signal.SIGINT),
        ("runserver", 1, ["--noreload"], signal.SIGINT),
        ("runserver", 1, ["--noreload"], signal.SIGTERM),
        ("uvicorn", 1, [], signal.SIGTERM),
        ("uvicorn", 2, [], signal.SIGINT),
        ("run_scheduler", 1, [], signal.SIGTERM),
        ("run_scheduler", 1, [], signal.SIGINT),
    ],
)
def test_a_stop_leaves_nothing_behind_and_ends_as_the_server_always_does(
    kind: str, workers: int, args: list[str], number: int, ledger_of: LedgerOf
) -> None:
    ledger = ledger_of(
        {
            "tenth": {"schedule": "every 0.1s"},
            "long": {"schedule": "every 0.5s", "seconds": 0.4},
            "async": {"schedule": "every 0.3s", "seconds": 0.25, "kind": "async"},
        }
    )
    for _ in range(CYCLES):
        before = len(ledger.starts())
        with serve(ledger, kind, *args, workers=workers) as server:
            wait_until(lambda seen=before: len(ledger.starts()) >= seen + 5, what="runs")
            code = server.stop(number)
            assert not complains(server)
        assert code == 0 if kind == "run_scheduler" else code == normal_code(ledger, kind, args, workers, number)
        ledger.check_clean_stop()
    ledger.check_once()
    ledger.check_one_at_a_time()


def normal_code(ledger: Ledger, kind: str, args: list[str], workers: int, number: int) -> int:
    """Return the exit code of the server when it runs no scheduler."""
    ledger.env["LEDGER_ENABLED"] = "0"
    with serve(ledger, kind, *args, workers=workers) as server:
        server.get("/")
        code = server.stop(number)
    del ledger.env["LEDGER_ENABLED"]
    return code


def test_what_a_killed_server_held_is_rescued_by_the_next_start_at_once(ledger_of: LedgerOf) -> None:
    """The reloader of `runserver` answers SIGTERM by killing its child."""
    ledger = ledger_of({"second": {"schedule": "every 1s"}, "long": {"schedule": "every 1s", "seconds": 3.0}})
    with serve(ledger, "runserver") as server:
        held = wait_until(lambda: under_way(ledger), what="a long run is under way")
        assert server.stop() == 0
    with serve(ledger, "runserver"):
        wait_until(
            lambda: [row for row in ledger.rows() if row.key == held.key and row.status == "lost"], 5 + 2 * noise()
        )
        wait_until(lambda: succeeded(ledger, held.key._replace(attempt=2)), what="another attempt")
        assert ledger.instances() == 1
    ledger.check_once()


@pytest.mark.parametrize("args", [[], ["--preload"]])
def test_a_killed_gunicorn_worker_changes_nothing(args: list[str], ledger_of: LedgerOf) -> None:
    ledger = ledger_of({"second": {"schedule": "every 1s"}, "long": {"schedule": "every 3s", "seconds": 2.0}})
    with serve(ledger, "gunicorn", *args, workers=3) as server:
        victim = wait_until(lambda: under_way(ledger), what="a long run is under way")
        os.kill(victim.pid, signal.SIGKILL)
        killed_at = now()
        lost = wait_until(
            lambda: [row for row in ledger.rows("long") if row.key == victim.key and row.status == "lost"],
            seconds=5 + 2 * noise(),
            what="the replacement rescues the run, long before the instance would count as dead",
        )
        assert len(lost) == 1
        again = victim.key._replace(attempt=2)
        wait_until(lambda: succeeded(ledger, again), what="the slot gets another attempt")
        wait_until(lambda: ledger.starts("second")[-1].at > killed_at.timestamp() + 4, what="slots go on")
        assert ledger.instances() == 3
        stopped_at = now()
        server.stop()
    assert all(line.pid != victim.pid for line in ledger.starts() if line.at > killed_at.timestamp())
    ledger.check_one_at_a_time(killed=[victim.pid])
    ledger.check_no_slot_missing({"second": 1.0, "long": 3.0}, stopped_at - soon())
    ledger.check_once()
    ledger.check_clean_stop()


def soon() -> timedelta:
    """Slots so shortly before the stop may have been left to the next start."""
    return timedelta(seconds=1 + noise())


def under_way(ledger: Ledger) -> Line | None:
    """Return the start of a long run that has not ended."""
    ended = {line.key for line in ledger.lines("end")}
    return next((line for line in ledger.starts("long") if line.key not in ended), None)


def succeeded(ledger: Ledger, key: Any) -> bool:
    return any(row.key == key and row.status == "succeeded" for row in ledger.rows())


INSERT = """
from datetime import timedelta
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job
from scheduler.schedules import Once
at = SYSTEM_CLOCK.now() + timedelta(seconds=3)
Job.objects.bulk_create([Job(name=f"due {n}", task="burst", schedule=Once(at)) for n in range(500)])
"""


def test_a_burst_inserted_by_another_process_is_shared_and_runs_once(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({"burst": {"seconds": 0.02}, "second": {"schedule": "every 1s"}})
    with serve(ledger, "gunicorn", workers=2) as server:
        wait_until(lambda: ledger.instances() == 2, what="both workers join")
        done = manage(ledger, "shell", "-c", INSERT)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: len([row for row in ledger.rows() if row.status == "succeeded"]) >= 500, what="500 runs")
        workers = set(pids_of_workers(server))
        server.stop()
    ledger.check_once()
    ledger.check_clean_stop()
    burst = [line for line in ledger.starts() if line.job.startswith("due ")]
    assert sorted(line.job for line in burst) == sorted(f"due {n}" for n in range(500))
    assert {line.pid for line in burst} == workers
