"""What happens while nothing runs: downtime, kills, changed code, changed rows, a clock that is set back."""

import os
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler.schedules import DailyAt, Once

from .ledger import Ledger, instant, manage, noise, now, run_scheduler
from .servers import wait_until

pytestmark = pytest.mark.acceptance
LedgerOf = Callable[[dict[str, dict[str, Any]]], Ledger]

SECOND = {"second": {"schedule": "every 1s"}}


def daily_in(seconds: float) -> tuple[datetime, str]:
    """Return a slot so soon, and the daily schedule that it belongs to."""
    slot = (now() + timedelta(seconds=seconds)).replace(microsecond=0)
    return slot, DailyAt(slot.hour, slot.minute, slot.second).to_text()


def boot(ledger: Ledger, *, runs: int = 2, kill: bool = False) -> str:
    """Run the scheduler until `second` has run so often again; return what it printed."""
    before = len(ledger.starts("second"))
    with run_scheduler(ledger) as server:
        wait_until(lambda: len(ledger.starts("second")) >= before + runs, what="it runs")
        if not kill:
            assert server.stop() == 0
            ledger.check_clean_stop()
        return server.output()


def test_down_at_the_due_minute_means_one_run_after_the_boot_and_none_after_the_next(ledger_of: LedgerOf) -> None:
    slot, daily = daily_in(5)
    ledger = ledger_of({**SECOND, "daily": {"schedule": daily}})
    boot(ledger, runs=1)
    assert ledger.rows("daily") == []
    assert instant(ledger.job("daily")["next_run_at"]) == slot
    wait_until(lambda: now() > slot + timedelta(seconds=1), what="the slot passes")
    boot(ledger)
    boot(ledger)
    (row,) = ledger.rows("daily")
    assert (row.slot, row.status) == (slot, "succeeded")
    assert row.started_at is not None
    assert row.started_at - slot > timedelta(seconds=1)
    assert len(ledger.starts("daily")) == 1


@pytest.mark.parametrize("policy", ["retry", "skip"])
def test_a_one_off_run_killed_after_its_start_never_succeeds_twice(policy: str, ledger_of: LedgerOf) -> None:
    once = Once(now() + timedelta(seconds=2)).to_text()
    ledger = ledger_of({**SECOND, "once": {"schedule": once, "seconds": 3.0, "on_lost": policy}})
    with run_scheduler(ledger) as server:
        wait_until(lambda: ledger.starts("once"), what="the start line")
        os.kill(server.pid, signal.SIGKILL)
    ledger.give({**ledger.tasks, "once": {**ledger.tasks["once"], "seconds": 0.0}})
    boot(ledger, runs=3)
    boot(ledger)
    expected = {"retry": ["lost", "succeeded"], "skip": ["lost"]}[policy]
    assert [row.status for row in ledger.rows("once")] == expected
    assert [row.attempt for row in ledger.rows("once")] == [1, 2][: len(expected)]
    assert len(ledger.starts("once")) == len(expected)


def test_a_one_off_run_that_ended_survives_five_restarts_as_one_run(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({**SECOND, "once": {"schedule": Once(now() + timedelta(seconds=1)).to_text()}})
    boot(ledger, runs=3)
    for kill in (False, True, False, True, False):
        boot(ledger, runs=1, kill=kill)
    assert [row.status for row in ledger.rows("once")] == ["succeeded"]
    assert len(ledger.starts("once")) == 1


def test_a_removed_task_is_orphaned_and_returns_with_its_history(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({**SECOND, "b": {"schedule": "every 1s"}})
    boot(ledger)
    wait_until(lambda: ledger.rows("b"))
    history = ledger.rows("b")
    ledger.give(SECOND)
    output = boot(ledger)
    assert ledger.rows("b") == history
    assert ledger.job("b")["orphaned_at"]
    assert ledger.job("b")["wake_at"] is None, "it keeps its plan, and nothing starts"
    assert "ERROR" not in output
    ledger.give({**SECOND, "b": {"schedule": "every 1s"}})
    boot(ledger, runs=3)
    assert ledger.job("b")["orphaned_at"] is None
    assert ledger.rows("b")[: len(history)] == history
    assert len(ledger.rows("b")) > len(history)
    ledger.check_once()


CHANGE = """
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Job
Job.objects.filter(name="hourly").update(schedule="every 2s")
print("changed at", SYSTEM_CLOCK.now().timestamp())
"""


def test_a_schedule_changed_by_another_process_is_in_force_within_a_poll(ledger_of: LedgerOf) -> None:
    ledger = ledger_of({**SECOND, "hourly": {"schedule": "every 1h"}})
    with run_scheduler(ledger) as server:
        wait_until(lambda: ledger.starts("second"), what="it runs")
        done = manage(ledger, "shell", "-c", CHANGE)
        assert done.returncode == 0, done.stderr
        changed_at = float(done.stdout.rpartition("changed at ")[2])
        first = wait_until(lambda: ledger.starts("hourly"), what="the new schedule is in force")[0]
        assert first.at - changed_at < 1 + 2 + noise(), "poll + interval + noise"
        server.stop()
    ledger.check_once()


def test_a_clock_set_back_stops_no_interval_and_repeats_no_fixed_time(ledger_of: LedgerOf) -> None:
    slot, daily = daily_in(4)
    ledger = ledger_of({**SECOND, "daily": {"schedule": daily}})
    offset = ledger.folder / "clock_offset"
    offset.write_text("0")
    with run_scheduler(ledger) as server:
        wait_until(lambda: [row for row in ledger.rows("daily") if row.status == "succeeded"], what="the daily run")
        set_clock(ledger, offset, -3600.0)
        assert "The clock moved back 1 h" in server.output()
        set_clock(ledger, offset, (slot - now()).total_seconds() - 2)
        wait_until(lambda: server_now(offset) > slot + timedelta(seconds=2), what="the slot passes again")
        server.stop()
    assert [row.slot for row in ledger.rows("daily")] == [slot]
    assert instant(ledger.job("daily")["next_run_at"]) == slot + timedelta(days=1)
    ledger.check_one_at_a_time()


def set_clock(ledger: Ledger, offset: Any, seconds: float) -> None:
    """Set the clock, and check that the interval goes on within one interval and a poll."""
    before = len(ledger.starts("second"))
    offset.with_suffix(".new").write_text(str(seconds))
    offset.with_suffix(".new").replace(offset)
    wait_until(
        lambda: len(ledger.starts("second")) >= before + 2, seconds=1 + 1 + 2 * noise(), what="the interval goes on"
    )


def server_now(offset: Any) -> datetime:
    return now() + timedelta(seconds=float(offset.read_text()))
