"""JobView: how a job stands. The one answer that the admin, the commands, the API and health give."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.plan_basis import policy_of
from scheduler.engine.views.conditions import CALM, URGENT, urgency
from scheduler.engine.views.datetimes import said
from scheduler.engine.views.overrides import Override, overrides_of
from scheduler.engine.views.pauses import Hold, Paused, end_of, holds_of, paused_groups
from scheduler.engine.views.upcoming import would_run_at
from scheduler.engine.views.waiting import Waiting, among, waiting_of
from scheduler.models import Job, JobState
from scheduler.models.run import AT_EXECUTOR
from scheduler.policy import Policy
from scheduler.policy.overlap import Overlap
from scheduler.schedules.instants import instant_text


class LastRun(NamedTuple):
    """How the run that ended last went; `took` is None while a later one is going on."""

    status: str
    errors: int
    finished_at: datetime | None
    took: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """How a job stands at an instant. Instants are aware and in UTC, texts are in the language of the reader.

    `state` is one word; a job that only a pause of its group, or of everything, holds is paused too. `reason` says why
    it does not run now, empty where only the time has not come. `next_start` is when it starts next: the end of the
    pause that holds it, a promised attempt or its planned slot; None where that is not known, as while an attempt is
    handed over and no process has taken it, or `after_run`: a slot has passed, and the end of the living run decides
    on it. `next_slot` is the slot that is planned. `would_run_at` is the next slot of a job that is not planned: it is
    disabled, or the next tick plans it. `attention` is why a person should look at it: broken, invalid, stuck,
    overdue, failing, not_fresh, deadline_missed, slower, or empty.
    """

    job: Job = field(repr=False)
    state: JobState
    reason: str
    next_start: datetime | None
    next_slot: datetime | None
    would_run_at: datetime | None
    after_run: bool
    held_by: Hold | None
    waiting: Waiting
    last: LastRun | None
    attention: str
    overridden: tuple[Override, ...]
    hidden_from_code: tuple[str, ...]
    """The fields of which the code says otherwise than a person whose change holds."""

    @property
    def name(self) -> str:
        """The name of the job."""
        return str(self.job.name)

    @property
    def policy(self) -> Policy:
        """The policies that hold, those of the schedule among them; raises InvalidSchedule when they cannot be read."""
        return policy_of(self.job)

    @property
    def stopped(self) -> bool:
        """Whether its schedule starts nothing."""
        return self.state not in (JobState.SCHEDULED, JobState.RUNNING)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data; instants in UTC, as RFC 3339 says."""
        job, hold = self.job, self.held_by
        instants = {
            "next_run_at": self.next_slot,
            "next_start_at": self.next_start,
            "would_run_at": self.would_run_at,
            "last_run_at": job.last_run_at,
        }
        return {
            "name": job.name,
            "task": job.task,
            "state": self.state.value,
            "reason": self.reason,
            "attention": self.attention,
            "paused_by_group": (hold.group or "*") if hold is not None and hold.group is not None else None,
            "schedule": str(job.schedule),
            **{name: instant_text(at) if at else None for name, at in instants.items()},
            "last_status": job.last_status,
            "last_errors": job.last_errors,
            "consecutive_failures": job.consecutive_failures,
            "problem": job.problem,
            "hidden_from_code": list(self.hidden_from_code),
            **({"waiting_users": self.waiting.users} if self.waiting.has_users else {}),
        }


def view_of(job: Job, now: datetime, paused: Paused, waiting: Waiting, attention: str = "") -> JobView:
    """Return how a job stands, by its row and what was learnt besides."""
    holds = holds_of(job, paused)
    state = state_of(job, bool(holds))
    would = None if holds else would_run_at(job, now)
    start = end_of(holds) if holds else _next_start(job, waiting, would)
    is_due = start is not None and start <= now
    after_run = is_due and not holds and job.active_runs > 0 and job.next_start_at is None
    overridden, hidden = overrides_of(job)
    return JobView(
        job=job,
        state=state,
        reason=_reason(job, state, holds, waiting, is_due=is_due),
        next_start=None if after_run else start,
        next_slot=next_slot_of(job, bool(holds)),
        would_run_at=would,
        after_run=after_run,
        held_by=next(iter(holds), None),
        waiting=waiting,
        last=_last_run(job),
        attention=attention,
        overridden=overridden,
        hidden_from_code=hidden,
    )


def state_of(job: Job, is_held: bool) -> JobState:
    """Return the state of a job, where a pause of its group, or of everything, counts as its own would."""
    return JobState.PAUSED if is_held and job.job_state == JobState.SCHEDULED else job.job_state


def next_slot_of(job: Job, is_held: bool) -> datetime | None:
    """Return the slot that is planned next; none is of an orphan, or while a pause holds the job."""
    slot: datetime | None = job.next_run_at
    return None if job.orphaned_at or (is_held and job.state_at_rest == JobState.SCHEDULED) else slot


def views_of(jobs: Iterable[Job], now: datetime, *, paused: Paused | None = None) -> dict[str, JobView]:
    """Return how each of some jobs stands, by their names, in a constant number of queries."""
    found = list(jobs)
    groups, waiting, attention = (
        paused_groups() if paused is None else paused,
        waiting_of(found),
        attention_of(found, now),
    )
    return {
        job.name: view_of(job, now, groups, waiting.get(job.pk, Waiting()), attention.get(job.pk, "")) for job in found
    }


def attention_of(jobs: Sequence[Job], now: datetime) -> dict[int | None, str]:
    """Return why a person should look at jobs, by their keys. Lists that order by it have it on the rows already."""
    places: dict[int | None, int] = {job.pk: job.attention for job in jobs if hasattr(job, "attention")}
    if rest := [job for job in jobs if job.pk not in places]:
        rows: Any = among(Job.objects.annotate(place=urgency(now)), "pk", rest)
        places |= dict(rows.exclude(place=CALM).values_list("pk", "place"))
    return {pk: URGENT[place] for pk, place in places.items() if place < CALM}


def _next_start(job: Job, waiting: Waiting, would: datetime | None) -> datetime | None:
    """Return when a job that no pause holds starts next: by its plan, by a promised attempt of a slot of it, or by the
    plan that the next tick makes."""
    if job.state_at_rest == JobState.BROKEN:
        return job.next_start_at  # its probe
    if not job.enabled or job.is_set_aside or job.orphaned_at:
        return None
    promised, planned = waiting.of_plan, job.next_start_at or job.next_run_at
    if promised and promised.handed_at:
        return planned if job.overlap == Overlap.ALLOW else None
    return min(filter(None, (planned, promised and promised.due_at)), default=would)


def _reason(job: Job, state: JobState, holds: list[Hold], waiting: Waiting, *, is_due: bool) -> str:
    if holds:
        return str(holds[0])
    if state in (JobState.ORPHANED, JobState.INVALID):
        return str(job.problem or getattr(job.schedule, "error", "") or getattr(job.policy, "error", ""))
    if state == JobState.BROKEN:
        failures = job.consecutive_failures
        return ngettext("%d failure in a row", "%d failures in a row", failures) % failures
    return _what_it_waits_for(waiting, is_due) if state == JobState.SCHEDULED else ""


def _what_it_waits_for(waiting: Waiting, is_due: bool) -> str:
    if waiting.gate:
        return _("It waits for its gate: {reason}").format(reason=waiting.gate)
    if (promised := waiting.of_plan) and promised.handed_at:
        words = _("Attempt {number} was handed over to {executor} at {time}; no process has taken it since.")
        executor = promised.reason.removeprefix(AT_EXECUTOR)
        return words.format(number=promised.attempt, executor=executor, time=said(promised.handed_at))
    if promised:
        return _("Attempt {number} starts at {time}.").format(number=promised.attempt, time=said(promised.due_at))
    if waiting.parents:
        return _("It waits for {jobs}.").format(jobs=", ".join(waiting.parents))
    return _("The group {name} is full.").format(name=waiting.full_group) if is_due and waiting.full_group else ""


def _last_run(job: Job) -> LastRun | None:
    began, ended = job.last_run_at, job.last_finished_at
    took = ended - began if began and ended and ended >= began else None
    return LastRun(job.last_status, job.last_errors, ended, took) if job.last_status else None


def told_of(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs, which know how they stand: when one is asked for its `view`, all of them are looked at."""
    found = list(jobs)
    views = cache(lambda: views_of(found, shared_now(Engine().using)))
    for job in found:
        job.viewer = lambda name=job.name: views()[name]
    return found
