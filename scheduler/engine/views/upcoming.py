"""To come: the slots that a job will have, as far as they are known. Changes nothing, and asks no database."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.plan import Plan, first_slot
from scheduler.engine.plan_basis import beginning, jitter_of, policy_of, schedule_of
from scheduler.engine.views.datetimes import shifted
from scheduler.exceptions import ConfigurationError
from scheduler.models import Job
from scheduler.policy.misfire import RESOLUTION
from scheduler.policy.overlap import queues
from scheduler.registry import registry


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the policies of a job leave of the slots of its schedule; None where they set no bound."""

    first: datetime | None
    last: datetime | None
    most: int | None

    def within(self, slots: Iterable[datetime]) -> list[datetime]:
        """Return those of some slots to come that the job will have."""
        first, last = self.first, self.last
        if first is None and last is None:
            return list(slots)[: self.most]
        found = (slot for slot in slots if not ((first and slot < first) or (last and slot > last)))
        return list(found)[: self.most]


def bounds_of(job: Job) -> Bounds:
    """Return the bounds of a job; raises InvalidSchedule when its policies cannot be read."""
    policy = policy_of(job)
    most = None if policy.max_runs is None else max(0, policy.max_runs - job.ended_runs - job.active_runs)
    return Bounds(policy.starts_at, policy.ends_at, most)


def slots_to_come(job: Job, count: int, now: datetime, *, held_until: datetime | None = None) -> list[datetime]:
    """Return the next `count` slots of a job, beginning with the one that is planned, however late it is.

    There are fewer where `ends_at` or `max_runs` leaves it no more, and only one where the end of its run decides on
    the next: counted from completion, or the probe of a broken job. A job without a plan, since it is stopped or was
    just changed, is told as one that goes on from `now`, and one that a pause holds goes on at its end. Raises
    InvalidSchedule when the job cannot be read.
    """
    if job.anchor_at is None:
        job = copy(job)
        job.anchor_at = beginning(job, now)
    schedule, policy = schedule_of(job), policy_of(job)
    first = _first_slot(job, now, held_until)
    if first is None:
        return []
    run_decides = schedule.from_completion or (job.broken_at and policy.breaker_probe_after)
    later = schedule.upcoming(0 if run_decides else count - 1, max(first, now))
    return bounds_of(job).within([first, *later])


def next_slot(job: Job, now: datetime) -> datetime | None:
    """Return the next slot of a job, however late it is; of one whose run keeps it from a slot that has passed and will
    be skipped, the first that may follow. None where the end of a run decides. Raises InvalidSchedule."""
    slot = next(iter(slots_to_come(job, 1, now)), None)
    if slot is None or slot > now or not waits_for_run(job) or queues(policy_of(job).overlap):
        return slot
    return next(iter(bounds_of(job).within(filter(None, [schedule_of(job).next_after(now)]))), None)


def start_of(job: Job, slot: datetime) -> datetime:
    """Return when a slot of a job is to start: later than the slot where a backoff, say, puts it off. Slots that pass
    before the next start wait for that, too."""
    start = job.next_start_at
    if start is not None and job.next_run_at <= slot <= start:
        return start
    return slot + jitter_of(job, slot, anchor_at=job.anchor_at or slot)


def put_off_until(job: Job) -> datetime | None:
    """Return until when the next start of a job is put off; None where it is the slot, or not known."""
    start: datetime | None = job.next_start_at
    return start if start is not None and start > job.next_run_at else None


def why_put_off(job: Job, slot: datetime) -> str:
    """Return what puts the start of a slot off, in words."""
    start = start_of(job, slot)
    first = job.next_run_at if start == job.next_start_at else slot
    if start == first + jitter_of(job, first, anchor_at=job.anchor_at or first):
        return _("the job has jitter")
    if start == job.postponed_until:
        return _("an attempt that waits until then holds the place of the job")
    if failures := job.consecutive_failures:
        return ngettext("the backoff after %d failure", "the backoff after %d failures in a row", failures) % failures
    return _("it was put off")


def waits_for_run(job: Job) -> bool:
    """Return whether a run goes on which has to end before the job starts again."""
    return job.active_runs > 0 and job.wake_at is None


def after_run(job: Job) -> timedelta | None:
    """Return how long after the end of the run that goes on a job starts again; None where a plan decides."""
    counts = job.active_runs and job.next_run_at is None and job.schedule.from_completion
    return job.schedule.period if counts else None


def slots_passed(job: Job, count: int, now: datetime) -> list[datetime]:
    """Return the last `count` slots that the schedule of a job has had since the job was made, the newest first.

    There is none where the slots follow from runs. Raises InvalidSchedule when the job cannot be read.
    """
    schedule, bounds = schedule_of(job), bounds_of(job)
    if schedule.from_completion or schedule.is_dependent or job.anchor_at is None:
        return []
    found: list[datetime] = []
    slot = schedule.previous_before(shifted(min(filter(None, (bounds.last, now))), RESOLUTION))
    while slot is not None and len(found) < count:
        if (bounds.first and slot < bounds.first) or (job.created_at and slot <= job.created_at):
            break
        found.append(slot)
        slot = schedule.previous_before(slot)
    return found


def would_run_at(job: Job, now: datetime) -> datetime | None:
    """Return the first slot of a job that is not planned yet, or would have if it were enabled; None of all others."""
    is_stopped = job.paused_at or job.broken_at or job.orphaned_at or job.problem
    if is_stopped or (job.enabled and not job.stale):
        return None
    try:
        return next(iter(slots_to_come(job, 1, now)), None)
    except (ConfigurationError, ValueError, OverflowError):
        return None


def jobs_of_code() -> list[Job]:
    """Return the jobs that the first start makes of registered tasks, by name; these have no key."""
    jobs = [Job(name=task.name, **task.job_columns()) for task in registry]
    return sorted(jobs, key=attrgetter("name"))


def _first_slot(job: Job, now: datetime, held_until: datetime | None) -> datetime | None:
    """Return the slot that is planned, or will be; where a pause holds the job past it, that which its end plans."""
    first: datetime | None = job.next_run_at or _first_to_plan(job, now)
    if held_until is None or held_until <= now or schedule_of(job).is_dependent or (first and first >= held_until):
        return first
    return first_slot(Plan.of(job), job, held_until, included=True)


def _first_to_plan(job: Job, now: datetime) -> datetime | None:
    """Return what the next tick would plan; None where an end that is still to come decides, of this job or others."""
    if job.schedule.is_dependent or (job.active_runs and job.schedule.from_completion):
        return None
    since = job.replan_from
    return first_slot(Plan.of(job), job, min(since or now, now), included=since is not None)
