"""Mutants: one safety of the app switched off, to see that the suite notices. By hand: `--mutant NAME`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import UniqueConstraint

from scheduler.activity import entry
from scheduler.engine import claim, claim_promised, finish, rescue
from scheduler.engine.base import Claimed
from scheduler.engine.outcome import Settled
from scheduler.executors import checkpoints, forked
from scheduler.models import Instance
from scheduler.policy import misfire
from scheduler.runtime import dispatcher, runner, taking
from scheduler.schedules import timeline


def install(name: str) -> None:
    """Switch one safety off; nothing without a name."""
    if name:
        MUTANTS[name]()


def _no_token() -> None:
    """Ends are written whatever their token."""

    def as_stored(engine: Any, ends: Sequence[Any], settled: Settled) -> list[Any]:
        runs = {
            run.pk: run for run in finish.RunLog.objects.select_related("job").filter(pk__in=[e.run.pk for e in ends])
        }
        return [(runs[end.run.pk], end.outcome) for end in ends if end.run.pk in runs]

    finish._as_stored = as_stored
    _unconditional(finish, "token", "status")


def _no_version() -> None:
    """Jobs are written whatever was written to them since they were read."""
    _unconditional(finish, "version")
    _unconditional(claim, "version")


def _no_rescue() -> None:
    """Nobody closes the runs of the dead."""
    dispatcher.rescue = lambda *_: Settled()


def _no_look_at_heartbeats() -> None:
    """Whoever rescues takes every other process for dead."""
    rescue.dead_instances = lambda engine, *_: list(Instance.objects.exclude(pk=engine.instance_id))


def _no_farewell() -> None:
    """A process that stops gives nothing back, and stays in the database."""
    runner.Runner._leave = lambda self: None  # type: ignore[method-assign]


def _no_condition_no_lock() -> None:
    """Due jobs are claimed without a lock and without a condition."""
    _no_version()
    claim.locked = claim_promised.locked = lambda rows, **_: rows


def _no_unique_slots() -> None:
    """The table of runs is made without its constraint (at `migrate`)."""
    UniqueConstraint.constraint_sql = lambda *_: None  # type: ignore[assignment, method-assign]


def _no_first_pass_rule() -> None:
    """A fixed time that comes twice is served when it comes for the second time."""
    offsets_of = timeline.instant_of.__globals__["offsets_of"]

    def second_pass(zone: ZoneInfo, wall: datetime) -> datetime:
        return wall - offsets_of(zone, wall)[1]

    timeline.instant_of = second_pass


def _no_coalescing() -> None:
    """Slots that were missed are run one by one."""
    misfire.latest_slot = lambda schedule, slot, now: slot


def _no_news() -> None:
    """What a user does while its run goes on is taken for known to it."""
    entry.Entry.has_news = property(lambda self: False)  # type: ignore[assignment]


def _no_leave() -> None:
    """A forked child that returns into our code goes on in it."""
    forked._leave = lambda pid, error: None  # type: ignore[assignment,return-value]


def _no_token_in_save() -> None:
    """A state is saved whatever became of the run."""

    def save_state(using: str, run_id: int, token: int, state: dict[str, Any]) -> bool:
        return bool(finish.RunLog.objects.using(using).filter(pk=run_id).update(checkpoint=state))

    checkpoints.save_state = save_state


def _no_claim_by_workers() -> None:
    """A worker runs what a message names, whoever runs it already."""

    def unclaimed(engine: Any, clock: Any, run_id: int) -> Claimed | None:
        run = finish.RunLog.objects.using(engine.using).select_related("job").get(pk=run_id)
        return Claimed(run, engine.registry.get(run.job.task))

    taking._claim = unclaimed


def _unconditional(module: Any, *dropped: str) -> None:
    real: Callable[..., None] = module.update_rows

    def update_rows(using: str, model: Any, changes: Any, conditions: Any, rows: Any) -> None:
        kept = tuple(name for name in conditions if name not in dropped)
        places = [*range(len(changes)), *(len(changes) + conditions.index(name) for name in kept)]
        real(using, model, changes, kept, ([row[place] for place in places] for row in rows))

    module.update_rows = update_rows


MUTANTS: dict[str, Callable[[], None]] = {
    "token": _no_token,
    "version": _no_version,
    "rescue": _no_rescue,
    "heartbeats": _no_look_at_heartbeats,
    "farewell": _no_farewell,
    "lock": _no_condition_no_lock,
    "unique": _no_unique_slots,
    "first-pass": _no_first_pass_rule,
    "coalescing": _no_coalescing,
    "news": _no_news,
    "forked": _no_leave,
    "save": _no_token_in_save,
    "claim": _no_claim_by_workers,
}
