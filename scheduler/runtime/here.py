"""Here: what this process does for the scheduler, as health tells it."""

from typing import TYPE_CHECKING, Any

from scheduler.runtime import current
from scheduler.runtime.startup import arm

if TYPE_CHECKING:
    from scheduler.runtime.runner import Runner


def here() -> dict[str, Any]:
    """Return what was decided for this process and, where it runs a scheduler, how its threads and workers are."""
    runner, decision = current.current(), arm.decision()
    told: dict[str, Any] = {
        "runs": runner is not None and runner.is_running(),
        "reason": decision.reason if decision else "not asked to start yet",
        "started_by": decision.how if decision else "",
        "fault": decision is not None and decision.fault,
    }
    return told if runner is None else told | _of_runner(runner)


def _of_runner(runner: "Runner") -> dict[str, Any]:
    services = runner.services
    return {
        "instance": str(runner.engine.instance_id),
        "joined": runner.member.joined,
        "seconds": runner.clock.monotonic() - runner.began,
        "threads": {one.name: one.is_alive() for one in services} | runner.pool.loop_state(),
        "workers": runner.pool.thread_states(),
        "errors": {one.name: one.last_error for one in services if one.errors},
        "failing": {one.name: one.errors_in_a_row for one in services if one.errors_in_a_row},
        "restarts": runner.watchdog.restarts,
        "hanging": sorted(runner.watchdog.hanging),
        "living_runs": len(runner.pool.living()),
        "unwritten_ends": runner.recorder.pending(),
        "zombies": runner.pool.zombies(),
        "refusal": runner.member.refusal,
        "lock": runner.locks.trouble() if runner.locks is not None else "",
        "redis_shared": {name: others for name, others in runner.neighbours.found.items() if others},
        "clock_offset": runner.clock.offset.total_seconds(),
    }
