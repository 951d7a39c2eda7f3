"""Sweep: compare what jobs derive with the rows it is derived from, and mend what differs.

No write of ours leaves a difference; a lost row, a restored dump or a statement in SQL does, and nothing else would
ever notice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import F, Q, QuerySet

from scheduler.engine.base import Engine
from scheduler.engine.db.bulk import LostRace, update_rows
from scheduler.engine.db.transactions import rewrite, write_transaction
from scheduler.engine.decide import UNREADABLE
from scheduler.engine.dependencies import replan_dependents
from scheduler.engine.events import CODE, SCHEDULER, event, write_events
from scheduler.engine.mend.clock_change import TOLERANCE
from scheduler.engine.mend.tallies import mend_tallies
from scheduler.engine.mend.telling import Note, tell_mended, telling
from scheduler.engine.mend.zones import tell_of_zones, zones_of_others
from scheduler.engine.plan_basis import basis_of, basis_of_plan
from scheduler.engine.replan import asked_at_once, planned_again
from scheduler.models import EventKind, Job, JobEvent, RunLog, Status
from scheduler.models.carriers import is_carrier
from scheduler.models.job_columns import CLOSES, REFUSED, REPEATED, WHERE_IT_GOES_ON, repeated, to_replan
from scheduler.models.primary import lock_in_order
from scheduler.safetext import counted

JOBS_AT_ONCE = 1000
"""Jobs that one sweep compares; the next sweep goes on behind them."""


UNAWARE = "it did not know of the jobs that wait for it"
EDITED_PAST = "its definition was changed past the scheduler, and it was still planned from the old one"


@dataclass(frozen=True, slots=True)
class Swept:
    """How many jobs a sweep has mended, and behind which id the next one goes on; 0 begins again."""

    mended: int = 0
    last: int = 0
    newest: datetime | None = None
    """When the last run of one of these jobs ended, or the last slot of an interval was."""

    def is_ahead_of(self, now: datetime) -> bool:
        """Return whether something is over that is to come; `now` has to be read after the sweep: others go on.

        A clock that was set back had told the time of it, and it was written when everything else had been repaired.
        """
        return self.newest is not None and self.newest > now + TOLERANCE


def sweep(engine: Engine, now: datetime, *, after: int = 0) -> Swept:
    """Compare the next `JOBS_AT_ONCE` jobs with what they derive from. Safe beside claims and ends of other processes.

    What looks wrong is compared again while no other process can change it, so a claim in between is no difference.
    """
    jobs = Job.objects.using(engine.using).filter(pk__gt=after).order_by("pk")
    page = list(jobs.light()[:JOBS_AT_ONCE])
    mend_repeated(engine, page)
    last = page[-1].pk if len(page) == JOBS_AT_ONCE else 0
    mend_tallies(engine, page, after, last)
    page = [job for job in page if not is_carrier(job)]  # of those that carry tasks nothing is derived
    mended = mend_counters(engine, page) + take_up_unread(engine, page)
    mended += mend_plans(engine, page, now) + mend_dependents(engine, page, now)
    return Swept(mended, last, max(_past(page), default=None))


def _past(page: Iterable[Job]) -> Iterator[datetime]:
    """Yield what is over of jobs. The slots of a fixed time that a wrong clock decided stay decided."""
    for job in page:
        last_slot = job.last_slot if job.schedule.is_interval else None
        yield from filter(None, (job.last_finished_at, job.last_outcome_at, last_slot))


def mend_repeated(engine: Engine, page: Sequence[Job]) -> None:
    """Make the columns that repeat a word of the schedule or the policy say what these say."""
    wrong = [job.pk for job in page if _repeated_again(job)]
    if wrong:
        rewrite(Job.objects.using(engine.using).filter(pk__in=wrong).order_by("pk"), _repeated_again, actor=SCHEDULER)


def _repeated_again(job: Job) -> dict[str, Any]:
    words = repeated({name: getattr(job, name) for name in REPEATED})
    return {name: word for name, word in words.items() if getattr(job, name) != word}


def mend_counters(engine: Engine, page: Sequence[Job]) -> int:
    """Make the living runs that jobs count equal to their rows, and plan those jobs; returns how many."""
    living = RunLog.objects.using(engine.using).living_by_job()
    wrong = [job.pk for job in page if job.active_runs != living[job.pk]]
    if not wrong:
        return 0
    jobs = Job.objects.using(engine.using).filter(pk__in=wrong).order_by("pk")
    with telling() as note:
        return rewrite(jobs, partial(_counted_again, note=note), actor=SCHEDULER)


def true_count(job: Job, living: int | None = None, note: Note | None = None) -> dict[str, Any]:
    """Return the column that counts the living runs, where it is wrong. No other process may change the job now.

    `living` spares the query where they were counted since then. Where it is wrong, that is noted, or told at once.
    """
    if living is None:
        living = RunLog.objects.using(job._state.db).living().filter(job_id=job.pk).count()
    if living == job.active_runs:
        return {}
    (note or _tell_one)(job.name, f"it counted {counted(job.active_runs, 'living run')} and has {living}")
    return {"active_runs": living}


def _tell_one(name: str, difference: str) -> None:
    tell_mended([name], difference)


def _counted_again(job: Job, note: Note) -> dict[str, Any]:
    columns = true_count(job, note=note)
    if columns and not (job.is_set_aside or job.orphaned_at):  # what stops these two stops them still
        # Nothing could run its slots: the misfire policy decides on them.
        columns |= to_replan(WHERE_IT_GOES_ON)
    return columns


def mend_plans(engine: Engine, page: Sequence[Job], now: datetime) -> int:
    """Plan jobs again whose definition or zone is not the one they are planned from, or that have no start although
    nothing stops them; returns how many."""
    _note_bases(engine, [job for job in page if not job.plan_basis and _is_planned(job) and job.wake_at])
    left = _zones_left_alone(engine, page, now)
    with asked_at_once(page):
        stale = [job.pk for job in page if job.task in engine.registry and _difference(job, now, left)]
    if not stale:
        return 0
    jobs = Job.objects.using(engine.using).filter(pk__in=stale).order_by("pk")
    return _write_mended(jobs, partial(_difference, now=now, left=left), now)


def _zones_left_alone(engine: Engine, page: Sequence[Job], now: datetime) -> frozenset[str]:
    """Return the zones of other live processes, where jobs are planned in one: each would mend what the other plans.

    A process replans once, when it starts. In a deploy that changes the zone, the old ones leave.
    """
    planned_in = {basis.zone for job in page if (basis := basis_of_plan(job))}
    if planned_in <= {"", settings.TIME_ZONE}:
        return frozenset()
    tell_of_zones(engine, now)
    return zones_of_others(engine, now)


def take_up_unread(engine: Engine, jobs: Iterable[Job]) -> int:
    """Have those of the jobs go on that can be read here and that another process set aside; returns how many.

    An earlier release stops a job with an option that it does not know, and no later write of its own undoes that.
    """
    unread = [job.pk for job in jobs if job.task in engine.registry and _goes_on_unread(job)]
    if not unread:
        return 0
    return rewrite(
        Job.objects.using(engine.using).filter(pk__in=unread).order_by("pk"), _goes_on_unread, actor=SCHEDULER
    )


def _goes_on_unread(job: Job) -> dict[str, Any]:
    if not (job.is_readable and job.is_set_aside) or job.orphaned_at or job.problem.startswith((REFUSED, CLOSES)):
        return {}
    return {"problem": "", **to_replan(WHERE_IT_GOES_ON)}


def replan_for_zone(engine: Engine) -> int:
    """Have the jobs planned from now on that were planned in another zone of the project; returns how many.

    For the start, before anything is claimed: a slot of the old zone must not run.
    """
    elsewhere = Job.objects.using(engine.using).filter(plan_basis__contains=" ", task__in=engine.registry.names())
    elsewhere = elsewhere.exclude(plan_basis__endswith=f" {settings.TIME_ZONE}").order_by("pk")
    return _write_mended(elsewhere, _planned_for_zone) if elsewhere.exists() else 0


def _write_mended(jobs: QuerySet[Job], difference: Callable[[Job], str], at: datetime | None = None) -> int:
    """Have the jobs that differ planned again, and write down of each how it differed; returns how many."""
    events: list[JobEvent] = []

    def mended(job: Job) -> dict[str, Any]:
        if not (found := difference(job)):
            return {}
        events.append(_event_of(job, found, at))
        note(job.name, found)
        return _replanned(job)

    with telling() as note, write_transaction(jobs.db):
        count = rewrite(jobs, mended, actor=SCHEDULER)
        write_events(jobs.db, events)
        return count


def _event_of(job: Job, difference: str, at: datetime | None) -> JobEvent:
    before = basis_of_plan(job)
    if before and difference == _zone_moved(job):
        return event(job, EventKind.ZONE_CHANGED, at, actor=CODE, old=before.zone, new=settings.TIME_ZONE)
    kind = EventKind.EDITED if difference == EDITED_PAST else EventKind.PLAN_MENDED
    return event(job, kind, at, actor="" if kind is EventKind.EDITED else SCHEDULER, reason=difference)


def _planned_for_zone(job: Job) -> str:
    return _zone_moved(job) if _is_planned(job) else ""


def _replanned(job: Job) -> dict[str, Any]:
    """Return the columns that have a job planned again: from now on by other slots, else without forgetting any."""
    before = basis_of_plan(job)
    other_slots = before is not None and before != replace(basis_of(job), starts=before.starts)
    goes_on_at = F("wake_at") if _lacks_slot(job) else WHERE_IT_GOES_ON
    from_now_on = other_slots and not _has_a_slot_of_today(job)
    return to_replan(None if from_now_on else goes_on_at)


def _has_a_slot_of_today(job: Job) -> bool:
    """Whether the next slot is one of today's definition: an earlier release plans, and does not note by what."""
    if job.next_run_at is None:
        return False
    try:
        return bool(planned_again(job, job.next_run_at, since=job.next_run_at).next_run_at == job.next_run_at)
    except UNREADABLE:
        return False


def _difference(job: Job, now: datetime, left: Collection[str]) -> str:
    """Say how a plan differs from what it would be made from today; empty when it does not, or is yet to be made.

    A job that is paused or broken is planned by what it is then when it goes on; but that needs a start, where the
    pause has an end, or a probe is to come.
    """
    if job.stale or not job.is_readable:
        return ""
    if _is_planned(job, enabled=False) and (difference := _from_todays_basis(job, left)):
        return difference
    if _lacks_slot(job):
        return "it had a start and no slot"
    return "nothing stops it for good, and it had no start" if _lacks_start(job, now) else ""


def _from_todays_basis(job: Job, left: Collection[str]) -> str:
    """Say how what a plan was made from differs from today's; another zone does not where it is one of those `left`."""
    before, basis = basis_of_plan(job), basis_of(job)
    if before is not None and before.zone in left:
        before = replace(before, zone=basis.zone)
    if before is None or before == basis:
        return ""
    if before.zone != basis.zone and before.slots == basis.slots:
        return _zone_moved(job)
    return EDITED_PAST


def _zone_moved(job: Job) -> str:
    before = basis_of_plan(job)
    zone = before.zone if before else ""
    return f"it was planned in the time zone {zone}, and TIME_ZONE is {settings.TIME_ZONE} here"


def _lacks_slot(job: Job) -> bool:
    return _is_planned(job) and job.next_run_at is None and job.wake_at is not None


def _lacks_start(job: Job, now: datetime) -> bool:
    """Whether a plan that is made now has a start, where the job has none and no attempt of it is open."""
    if not job.enabled or job.wake_at is not None or job.active_runs or job.schedule.is_dependent:
        return False  # the end of a run, or of a parent, plans these
    try:
        return planned_again(job, now).wake_at is not None and not _has_open_runs(job)
    except UNREADABLE:
        return False


def _has_open_runs(job: Job) -> bool:
    runs = RunLog.objects.using(job._state.db).filter(job_id=job.pk)
    return runs.filter(Q(status=Status.PENDING) | Q(due_at__isnull=False)).exists()


def _note_bases(engine: Engine, jobs: Sequence[Job]) -> None:
    """Note what the plans of an earlier release are made from. Where others change the jobs, the next sweep does."""
    if not jobs:
        return
    rows = ((str(basis_of(job)), job.version + 1, job.pk, job.version) for job in jobs)
    with suppress(LostRace), write_transaction(engine.using):
        update_rows(engine.using, Job, ("plan_basis", "version"), ("id", "version"), rows)


def mend_dependents(engine: Engine, page: Sequence[Job], now: datetime) -> int:
    """Let parents know again who waits for them, and those who wait look once more; returns how many parents."""
    waiting = (job for job in page if job.schedule.is_dependent and _is_planned(job))
    forgotten = _forgetful(engine, {name for job in waiting for name in job.schedule.parents})
    if not forgotten:
        return 0
    with write_transaction(engine.using):
        parents = Job.objects.using(engine.using).filter(name__in=forgotten)
        lock_in_order(parents)
        parents.update(has_dependents=True)
        unaware = parents.only("name").order_by("pk")
        write_events(
            engine.using, [event(job, EventKind.PLAN_MENDED, now, actor=SCHEDULER, reason=UNAWARE) for job in unaware]
        )
        replan_dependents(engine.using, forgotten)
    tell_mended(forgotten, UNAWARE)
    return len(forgotten)


def _is_planned(job: Job, *, enabled: bool = True) -> bool:
    """Whether nothing stops the job, and its plan is made. `enabled=False` takes disabled ones too."""
    is_stopped = job.paused_at or job.broken_at or job.orphaned_at or job.is_set_aside
    return (job.enabled or not enabled) and not is_stopped and not job.stale


def _forgetful(engine: Engine, parents: Collection[str]) -> set[str]:
    if not parents:
        return set()
    jobs = Job.objects.using(engine.using).filter(name__in=parents, has_dependents=False)
    return set(jobs.values_list("name", flat=True))
