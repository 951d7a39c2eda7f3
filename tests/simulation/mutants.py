"""Mutants: the engine with one of its safeguards switched off. Each is a context; the checker has to notice it."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest import mock

from django.db import models

from scheduler.activity import entry, service
from scheduler.engine import (
    claim,
    claim_promised,
    decide,
    finish,
    instances,
    limits,
    pauses,
    plan,
    plan_basis,
    rescue,
    settle,
    unable,
)
from scheduler.engine.base import Claimed
from scheduler.engine.mend import sweep
from scheduler.engine.outcome import Settled
from scheduler.models import Instance, Job, RunLog, Trigger, fields, stored
from scheduler.models.run import CAUSES, RunQuerySet
from scheduler.policy import misfire
from tests.simulation import checkpoints, elsewhere, node, strangers

Mutant = Callable[[], AbstractContextManager[Any]]


def no_unique_slots() -> AbstractContextManager[Any]:
    """The database takes a second row for a slot that is decided."""
    insert = claim.insert_runs

    def insert_anyway(using: str, runs: Sequence[RunLog]) -> None:
        for run in runs:
            while RunLog.objects.filter(job_id=run.job_id, scheduled_for=run.scheduled_for, attempt=run.attempt):
                run.attempt += 1
        insert(using, runs)

    return mock.patch.object(claim, "insert_runs", insert_anyway)


def no_look_into_the_ledger() -> AbstractContextManager[Any]:
    """Whatever the database refuses of a claim is taken for a slot that stands in the ledger."""
    return mock.patch.object(claim, "stands_in_ledger", return_value=True)


def no_token_check() -> AbstractContextManager[Any]:
    """A finish is written whatever became of its claim."""

    def trusted(engine: Any, ends: Sequence[Any], settled: Any) -> list[Any]:
        ids = [end.run.pk for end in ends]
        runs = {run.pk: run for run in RunLog.objects.filter(pk__in=ids).select_related("job")}
        return [(runs[end.run.pk], end.outcome) for end in ends if end.run.pk in runs]

    return mock.patch.object(finish, "_as_stored", trusted)


@contextmanager
def no_version_in_claim() -> Iterator[None]:
    """A claim is written even when somebody changed the job since it was read."""

    def write(engine: Any, jobs: list[Job]) -> None:
        _write_blindly(claim.CLAIM_COLUMNS, claim.values_of, jobs)

    with mock.patch.object(claim, "write_jobs", write), mock.patch.object(claim_promised, "write_jobs", write):
        yield


def no_version_in_finish() -> AbstractContextManager[Any]:
    """A finish is written on what the claim knew of the job."""

    def write(engine: Any, jobs: dict[int, Job]) -> None:
        _write_blindly(finish.JOB_COLUMNS, finish.job_values, list(jobs.values()))

    return mock.patch.object(finish, "_write_jobs", write)


def _write_blindly(columns: Sequence[str], values: Callable[[Job], Any], jobs: list[Job]) -> None:
    for job in jobs:
        job.version += 1
        Job.objects.filter(pk=job.pk).update(**dict(zip(columns, values(job), strict=True)))


def no_coalescing() -> AbstractContextManager[Any]:
    """Slots that are late together are not counted on the row of the newest."""
    judge = misfire.judge

    def forgetful(*args: Any, **options: Any) -> misfire.Verdict:
        return replace(judge(*args, **options), coalesced=0, coalesced_from=None, missed_coalesced=0, missed_from=None)

    return mock.patch.object(misfire, "judge", forgetful)


def no_rescue() -> AbstractContextManager[Any]:
    """Nobody closes the runs of the dead."""
    return mock.patch.object(node, "rescue", return_value=Settled())


def no_look_at_heartbeats() -> AbstractContextManager[Any]:
    """Whoever rescues takes every other process for dead."""

    def all_others(engine: Any, *_: Any) -> list[Instance]:
        return list(Instance.objects.exclude(pk=engine.instance_id))

    return mock.patch.object(rescue, "dead_instances", all_others)


@contextmanager
def no_overlap_guard() -> Iterator[None]:
    """A job is free however many runs of it live."""
    with ExitStack() as stack:
        for module in (claim_promised, decide, plan):
            stack.enter_context(mock.patch.object(module, "is_free", return_value=True))
        yield


def no_last_slot_guard() -> AbstractContextManager[Any]:
    """A job is planned afresh without regard to what it has claimed already."""
    first_slot = plan.first_slot

    def unguarded(known: plan.Plan, *given: Any, **named: Any) -> Any:
        return first_slot(known._replace(last_slot=None), *given, **named)

    return mock.patch.object(plan, "first_slot", unguarded)


def no_cap_on_lost_attempts() -> AbstractContextManager[Any]:
    """A handler that kills its process is tried for ever."""
    return mock.patch.object(settle, "MAX_LOST_ATTEMPTS", 1_000_000)


@contextmanager
def no_group_limits() -> Iterator[None]:
    """Groups take any number of runs."""
    with (
        mock.patch.object(limits.Limits, "admits", return_value=True),
        mock.patch.object(limits.Limits, "full", return_value=set()),
    ):
        yield


@contextmanager
def no_group_pauses() -> Iterator[None]:
    """The pause of a group, or of everything, stops nothing."""
    with (
        mock.patch.object(limits.Limits, "pauses", return_value=False),
        mock.patch.object(limits.Limits, "open_jobs", lambda self, jobs: jobs.exclude(group__in=self.full())),
        mock.patch.object(limits.Limits, "open_attempts", lambda self, runs, now: runs),
    ):
        yield


def no_end_of_pauses() -> AbstractContextManager[Any]:
    """The jobs of a group go on after its pause as if there had been none."""
    return mock.patch.object(pauses, "_plan_from")


def no_giving_back() -> AbstractContextManager[Any]:
    """A process that stops, or whose workers are held, keeps the claims that it has not started."""
    return mock.patch.object(node, "release_runs", return_value=Settled())


def no_adoption() -> AbstractContextManager[Any]:
    """A claim whose answer was lost is never asked for."""
    return mock.patch.object(node, "unheard_claims", return_value=[])


def no_further_attempt_by_hand() -> AbstractContextManager[Any]:
    """A run by hand whose process died is lost for good."""
    return mock.patch.dict(CAUSES, {Trigger.MANUAL: replace(Trigger.MANUAL.cause, retried_as="")})


def no_place_for_postponed_attempts() -> AbstractContextManager[Any]:
    """An attempt that puts itself off holds no place of its job: the next slots start beside it."""
    return mock.patch.object(settle, "_took_its_place_along", return_value=False)


def no_count_of_attempts() -> AbstractContextManager[Any]:
    """Every attempt thinks that it is the first."""
    of = RunLog.of
    return mock.patch.object(RunLog, "of", lambda job, **columns: of(job, **columns | {"failed_attempts": 0}))


def no_waking_of_dependents() -> AbstractContextManager[Any]:
    """The end of a parent wakes nobody."""
    return mock.patch.object(finish, "wake_dependents", return_value=0)


def no_sweep() -> AbstractContextManager[Any]:
    """What was bent stays so."""
    return mock.patch.object(node, "sweep", return_value=sweep.Swept())


def no_look_at_definitions() -> AbstractContextManager[Any]:
    """A plan stays as it is, whatever somebody writes into the definition of its job in SQL."""
    return mock.patch.object(sweep, "mend_plans", return_value=0)


def no_count_of_rows() -> AbstractContextManager[Any]:
    """A job is busy as long as it says so, whether the row of its run is there or not."""
    return mock.patch.object(sweep, "mend_counters", return_value=0)


def no_look_for_dependents() -> AbstractContextManager[Any]:
    """A job that does not know who waits for it is not told."""
    return mock.patch.object(sweep, "mend_dependents", return_value=0)


def no_mending_of_values() -> AbstractContextManager[Any]:
    """What cannot be read stays as it is."""
    return mock.patch.object(node, "mend_spoiled", return_value=[])


@contextmanager
def no_distrust_of_instants() -> Iterator[None]:
    """A value of SQLite that is no instant is an error of the whole query."""
    sqlite3.register_converter(fields.SQLITE_TYPE, lambda text: datetime.fromisoformat(text.decode() + "+00:00"))
    try:
        yield
    finally:
        sqlite3.register_converter(fields.SQLITE_TYPE, fields._read_instant)


def no_distrust_of_shapes() -> AbstractContextManager[Any]:
    """JSON is taken for what it should be."""
    return mock.patch.object(fields.ShapedField, "from_db_value", models.JSONField.from_db_value)


def no_distrust_of_schedules() -> AbstractContextManager[Any]:
    """A schedule that cannot be read is an error of the whole query."""
    return mock.patch.object(fields, "read_schedule", stored.parse)


def no_leaving_to_others() -> AbstractContextManager[Any]:
    """What one process cannot read is called invalid at once, whoever can."""

    def tell_at_once(engine: Any, now: datetime) -> None:
        for pk, one in engine.unable.jobs.items():
            unable._call_invalid(engine, pk, one)

    return mock.patch.object(claim, "tell_others", tell_at_once)


def no_look_at_the_host() -> AbstractContextManager[Any]:
    """Who is silent is dead, even if the table of processes says otherwise and only one may write at a time."""
    return mock.patch.object(instances, "has_one_writer", return_value=False)


@contextmanager
def no_zone_in_plans() -> Iterator[None]:
    """A plan does not remember in which zone it was made."""
    with mock.patch.object(plan_basis, "_follows", return_value=False):
        plan_basis._basis.cache_clear()
        yield
    plan_basis._basis.cache_clear()


def no_days_of_other_zones() -> AbstractContextManager[Any]:
    """A day that has had its run in another zone has one more."""
    return mock.patch.object(plan, "last_decided", lambda job, slot: slot)


def no_news() -> AbstractContextManager[Any]:
    """What a user does while its run goes on is taken for known to it."""
    return mock.patch.object(entry.Entry, "has_news", property(lambda self: False))


def no_end_of_entries() -> AbstractContextManager[Any]:
    """The end of a run frees no entry."""
    return mock.patch.object(service, "_free_ended")


def no_token_in_save() -> AbstractContextManager[Any]:
    """A handler saves its state whatever became of its run."""

    def save_anyway(using: str, run_id: int, token: int, state: dict[str, Any]) -> bool:
        return bool(RunLog.objects.filter(pk=run_id).update(checkpoint=state))

    return mock.patch.object(checkpoints, "save_state", save_anyway)


@contextmanager
def no_look_at_taken_groups() -> Iterator[None]:
    """A process claims whatever is due, of which groups it takes the jobs or not."""
    with (
        mock.patch.object(claim, "jobs_taken", lambda takes, jobs: jobs),
        mock.patch.object(claim_promised, "attempts_taken", lambda takes, runs: runs),
    ):
        yield


def no_state_of_the_lost() -> AbstractContextManager[Any]:
    """What a run saved is forgotten when its process dies."""
    return mock.patch.object(settle, "_keep_state")


def worker_ignores_the_claim() -> AbstractContextManager[Any]:
    """Who is sent an attempt runs it without asking for it."""

    def take(self: elsewhere.Consumer, run: int) -> Claimed | None:
        row = RunLog.objects.select_related("job").get(pk=run)
        row.started_at = self.now
        return Claimed(row, self.engine.registry.get(row.job.task))

    return mock.patch.object(elsewhere.Consumer, "take", take)


def nothing_is_handed_over_again() -> AbstractContextManager[Any]:
    """A message that was lost is lost for good."""
    ready = RunQuerySet.ready
    return mock.patch.object(RunQuerySet, "ready", lambda self, at: ready(self, at).filter(handed_at=None))


MUTANTS: dict[Mutant, tuple[set[str], dict[str, float]]] = {
    no_unique_slots: ({"I1", "I3"}, {"clock_back": 5, "dispatch": 60, "pass_time": 40}),
    no_look_into_the_ledger: ({"I3", "I8", "I9"}, {"refused_claim": 8}),
    no_token_check: ({"I2", "I5", "I6", "I12", "I14", "I19"}, {}),
    no_version_in_claim: ({"I2", "I3", "I5", "I8", "I9", "I12", "I13"}, {"stale_claim": 4}),
    no_version_in_finish: ({"I5", "I8", "I9", "I12"}, {}),
    no_coalescing: ({"I3", "I10"}, {}),
    no_rescue: ({"I7", "I17"}, {}),
    no_look_at_heartbeats: ({"I7"}, {}),
    no_overlap_guard: ({"I2"}, {}),
    no_last_slot_guard: ({"I1", "I3", "I8", "I9", "I16"}, {"edit": 24, "add": 8, "dispatch": 60}),
    no_cap_on_lost_attempts: ({"I11", "I14"}, {"start": 60, "boot": 12, "pass_time": 40, "end": 2}),
    no_count_of_attempts: ({"I11", "I14"}, {"start": 60, "boot": 12, "pass_time": 40, "end": 2}),
    no_further_attempt_by_hand: ({"I3", "I11"}, {"start": 40, "run_by_hand": 12, "crash": 6, "boot": 12}),
    no_place_for_postponed_attempts: (
        {"I2"},
        {"start": 60, "end": 60, "dispatch": 60, "pass_time": 40} | dict.fromkeys(strangers.ACTS, 0),
    ),
    no_group_limits: ({"I15"}, {}),
    no_group_pauses: ({"I13"}, {}),
    no_end_of_pauses: ({"I3", "I13"}, {}),
    no_giving_back: ({"I7", "I17", "I18"}, {"stop": 5, "boot": 8}),
    no_adoption: ({"I7", "I17", "I18"}, {"claim_in_doubt": 5}),
    no_waking_of_dependents: ({"I16"}, {"add": 4}),
    no_sweep: ({"I12"}, {"bend_count": 4}),
    no_look_at_definitions: ({"I3", "I9", "I17"}, {"switch": 4, "reschedule": 4}),
    no_count_of_rows: ({"I12"}, {"lose_run": 6}),
    no_look_for_dependents: ({"I16"}, {"forget_dependents": 8, "add": 6}),
    no_mending_of_values: ({"I9", "I17"}, {"spoil": 8}),
    no_distrust_of_instants: ({"I17"}, {"spoil": 8}),
    no_distrust_of_shapes: ({"I17"}, {"spoil": 8, "edit_by_api": 8}),
    no_distrust_of_schedules: ({"I17"}, {"garble": 8}),
    no_leaving_to_others: ({"I17"}, {"boot_elder": 6}),
    no_look_at_the_host: ({"I7"}, {"starve": 8, "start": 40}),
    no_zone_in_plans: ({"I3", "I8", "I9"}, {"move": 4, "add": 4}),
    no_days_of_other_zones: ({"I1", "I8", "I9"}, {"move": 6, "add": 6}),
    no_news: ({"I20"}, {"tell": 25, "drain": 25}),
    no_token_in_save: ({"I5", "I6"}, {"save": 20, "abandon": 4}),
    no_state_of_the_lost: ({"I5"}, {"save": 20, "crash": 4}),
    no_end_of_entries: ({"I17", "I20"}, {"tell": 25, "drain": 25}),
}
"""Every mutant, the invariants that it breaks, and what has to happen more often than usual for it to matter soon."""
HANDED_OVER: dict[Mutant, set[str]] = {
    worker_ignores_the_claim: {"I2", "I6", "I19"},
    nothing_is_handed_over_again: {"I17"},
}
"""Mutants that matter where runs are handed over."""
DEDICATED: dict[Mutant, set[str]] = {no_look_at_taken_groups: {"I15"}}
"""Mutants that matter where processes take the jobs of some groups only."""
