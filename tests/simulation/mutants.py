"""Mutants: the engine with one of its safeguards switched off. Each is a context; the checker has to notice it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from scheduler.activity import entry
from scheduler.engine import activity, claim, decide, finish, limits, plan, rescue, settle
from scheduler.engine.outcome import Settled
from scheduler.models import Instance, Job, RunLog
from scheduler.policy import misfire
from tests.simulation import node

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


def no_token_check() -> AbstractContextManager[Any]:
    """A finish is written whatever became of its claim."""

    def trusted(engine: Any, ends: Sequence[Any], settled: Any) -> list[Any]:
        ids = [end.run.pk for end in ends]
        runs = {run.pk: run for run in RunLog.objects.filter(pk__in=ids).select_related("job")}
        return [(runs[end.run.pk], end.outcome) for end in ends if end.run.pk in runs]

    return mock.patch.object(finish, "_as_stored", trusted)


def no_version_in_claim() -> AbstractContextManager[Any]:
    """A claim is written even when somebody changed the job since it was read."""
    return _without_version(claim, claim.CLAIM_COLUMNS, claim.values_of)


def no_version_in_finish() -> AbstractContextManager[Any]:
    """A finish is written on what the claim knew of the job."""

    def write(engine: Any, jobs: dict[int, Job], versions: dict[int, int]) -> None:
        _write_blindly(finish.JOB_COLUMNS, finish.job_values, list(jobs.values()))

    return mock.patch.object(finish, "_write_jobs", write)


def _without_version(module: Any, columns: Sequence[str], values: Callable[[Job], Any]) -> AbstractContextManager[Any]:
    return mock.patch.object(module, "_write_jobs", lambda engine, jobs: _write_blindly(columns, values, jobs))


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
        for module in (claim, decide, plan):
            stack.enter_context(mock.patch.object(module, "is_free", return_value=True))
        yield


def no_last_slot_guard() -> AbstractContextManager[Any]:
    """A job is planned afresh without regard to what it has claimed already."""
    first_slot = plan.first_slot

    def unguarded(job: Job, now: Any) -> Any:
        kept, job.last_slot = job.last_slot, None
        try:
            return first_slot(job, now)
        finally:
            job.last_slot = kept

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
    return mock.patch.object(limits, "_plan_from")


def no_giving_back() -> AbstractContextManager[Any]:
    """A process that stops, or whose workers are held, keeps the claims that it has not started."""
    return mock.patch.object(node, "release_runs", return_value=Settled())


def no_adoption() -> AbstractContextManager[Any]:
    """A claim whose answer was lost is never asked for."""
    return mock.patch.object(node, "unheard_claims", return_value=[])


def no_count_of_attempts() -> AbstractContextManager[Any]:
    """Every attempt thinks that it is the first."""
    of = RunLog.of
    return mock.patch.object(RunLog, "of", lambda job, **columns: of(job, **columns | {"failed_attempts": 0}))


def no_waking_of_dependents() -> AbstractContextManager[Any]:
    """The end of a parent wakes nobody."""
    return mock.patch.object(finish, "wake_dependents", return_value=0)


def no_news() -> AbstractContextManager[Any]:
    """What a user does while its run goes on is taken for known to it."""
    return mock.patch.object(entry.Entry, "has_news", property(lambda self: False))


def no_end_of_entries() -> AbstractContextManager[Any]:
    """The end of a run frees no entry."""
    return mock.patch.object(activity, "_free_ended")


MUTANTS: dict[Mutant, dict[str, float]] = {
    no_unique_slots: {"clock_back": 5, "dispatch": 60, "pass_time": 40},
    no_token_check: {},
    no_version_in_claim: {"stale_claim": 4},
    no_version_in_finish: {},
    no_coalescing: {},
    no_rescue: {},
    no_look_at_heartbeats: {},
    no_overlap_guard: {},
    no_last_slot_guard: {"edit": 12, "add": 4, "dispatch": 50},
    no_cap_on_lost_attempts: {"start": 60, "boot": 12, "pass_time": 40, "end": 2},
    no_count_of_attempts: {"start": 60, "boot": 12, "pass_time": 40, "end": 2},
    no_group_limits: {},
    no_group_pauses: {},
    no_end_of_pauses: {},
    no_giving_back: {"stop": 5, "boot": 8},
    no_adoption: {"claim_in_doubt": 5},
    no_waking_of_dependents: {"add": 4},
    no_news: {"tell": 25, "drain": 25},
    no_end_of_entries: {"tell": 25, "drain": 25},
}
"""Every mutant, and what has to happen more often than usual for it to matter soon."""
