"""Pause, resume and reset: a person's stop of a job, a group or everything, and the way back."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db.models import QuerySet

from scheduler.arguments import checked_group, checked_text
from scheduler.engine.base import Engine
from scheduler.engine.control.gate import ask_gate
from scheduler.engine.control.lookup import get_job
from scheduler.engine.control.plan_now import plan_at_once
from scheduler.engine.control.versions import IfVersion, refuse_other_version, unchanged
from scheduler.engine.db.fast_read import read_rows
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import rewrite, write_transaction
from scheduler.engine.events import event, pause_data, write_events
from scheduler.engine.mend.sweep import true_count
from scheduler.engine.pauses import NOT_PAUSED, begun_pause, resume_group_row
from scheduler.engine.views.job_view import told_of
from scheduler.exceptions import InvalidOption, Refused
from scheduler.models import EVERYTHING, FAILURES, EventKind, Group, Job, RunLog, in_groups
from scheduler.models.job import announce
from scheduler.models.job_columns import NO_PLAN, WHERE_IT_GOES_ON, to_replan
from scheduler.models.primary import locked
from scheduler.registry import registry
from scheduler.signals import after_commit, group_paused, job_paused, job_recovered, job_resumed

PAUSED_AT_ONCE = 500


def pause_job(
    name: str, *, until: datetime | None = None, reason: str = "", actor: str = "", if_version: IfVersion = None
) -> Job:
    """Stop a job from starting, at once, until `until` (aware) or until it is resumed. Idempotent.

    Raises Refused with code `changed` as `update_job`.
    """
    refuse_other_version(name, get_job(name), if_version)
    with unchanged(name, if_version):
        found = pause_jobs([get_job(name)], until=until, reason=reason, actor=actor)
    if not found:  # deleted since it was read; another one may have its name
        return pause_job(name, until=until, reason=reason, actor=actor, if_version=if_version)
    return found[0]


def pause_jobs(jobs: Sequence[Job], *, until: datetime | None = None, reason: str = "", actor: str = "") -> list[Job]:
    """Stop jobs as `pause_job` does, some hundreds in one transaction; returns them as they are then."""
    pause = begun_pause(shared_now(Engine().using), until, reason, actor)
    found: list[Job] = []

    def paused(job: Job) -> dict[str, Any]:
        columns = pause(job)
        return columns | NO_PLAN | {"wake_at": columns["paused_until"]}

    for start in range(0, len(jobs), PAUSED_AT_ONCE):
        rows = Job.objects.filter(pk__in=[job.pk for job in jobs[start : start + PAUSED_AT_ONCE]]).order_by("pk")
        rewrite(rows, paused, actor=actor)
        found += read_rows(rows.all())
    for job in found:
        after_commit(job_paused, Job, using=Engine().using, job=job)
    return told_of(found)


def resume_job(name: str, *, actor: str = "", if_version: IfVersion = None) -> Job:
    """End a pause and plan the job from now; slots that passed during the pause are not made up for. Idempotent.

    A broken job is reset too, since resuming means that it should run. Raises Refused with code `gate_closed`, or
    `changed` as `update_job`.
    """
    checked_text("actor", actor)
    job = get_job(name)
    refuse_other_version(name, job, if_version)
    if job.broken_at or job.paused_at:
        ask_gate(registry.find(job.task))
    with unchanged(name, if_version):
        if job.broken_at is not None:
            _reset(job, actor)
        return get_job(name) if job.paused_at is None else _resume(job, actor)


def resume_jobs(jobs: Sequence[Job], *, actor: str = "") -> tuple[list[Job], list[Refused]]:
    """End pauses, and breaks, as `resume_job` does, some hundreds in one transaction; returns the jobs that go on now,
    and why others do not: the gate of each task is asked once."""
    checked_text("actor", actor)
    stopped = [job for job in jobs if job.broken_at or job.paused_at]
    closed = _closed_gates({job.task for job in stopped})
    allowed = [job.pk for job in stopped if job.task not in closed]
    found: list[Job] = []
    for start in range(0, len(allowed), PAUSED_AT_ONCE):
        found += _resumed(Job.objects.filter(pk__in=allowed[start : start + PAUSED_AT_ONCE]).order_by("pk"), actor)
    return told_of(found), [closed[task] for task in sorted(closed)]


def _closed_gates(tasks: set[str]) -> dict[str, Refused]:
    """Return the refusals of those tasks whose gate is closed."""
    closed: dict[str, Refused] = {}
    for task in tasks:
        try:
            ask_gate(registry.find(task))
        except Refused as refusal:
            closed[task] = refusal
    return closed


def _resumed(rows: QuerySet[Job], actor: str) -> list[Job]:
    now, paused, broken = shared_now(Engine().using), set[int](), set[int]()
    living = _counted_once(rows)

    def resumed(job: Job) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        if job.broken_at:
            broken.add(job.pk)
            columns |= _as_reset(job, living()[job.pk])
        if job.paused_at:
            paused.add(job.pk)
            columns |= NOT_PAUSED | to_replan(min(now, job.paused_until or now))
        return columns

    with write_transaction(Engine().using):
        rewrite(rows, resumed, actor=actor)
        planned = plan_at_once(rows.all())
    found = _as_they_are(paused | broken, planned)
    for job in found:
        if job.pk in broken:
            after_commit(job_recovered, Job, using=Engine().using, job=job, run=None)
        if job.pk in paused:
            after_commit(job_resumed, Job, using=Engine().using, job=job, actor=actor)
    return found


def _resume(job: Job, actor: str) -> Job:
    with write_transaction(Engine().using):
        was_paused = rewrite(Job.objects.filter(pk=job.pk), _as_resumed, actor=actor)
        plan_at_once(Job.objects.filter(pk=job.pk))
    job = get_job(job.name)
    if was_paused:
        after_commit(job_resumed, Job, using=Engine().using, job=job, actor=actor)
    return job


def _as_resumed(job: Job) -> dict[str, Any]:
    """Return the columns of a job whose pause ends; none where another person ended it while the gate was asked."""
    now = shared_now(Engine().using)
    return NOT_PAUSED | to_replan(min(now, job.paused_until or now)) if job.paused_at else {}


def reset_job(name: str, *, actor: str = "", if_version: IfVersion = None) -> Job:
    """Let a broken job run again: failures to 0, planned from now. What is due of one that was not stays due.

    Living runs that it counts and that have no row are forgotten. Raises Refused with code `gate_closed`, or `changed`
    as `update_job`.
    """
    checked_text("actor", actor)
    job = get_job(name)
    refuse_other_version(name, job, if_version)
    if job.broken_at or job.problem:
        ask_gate(registry.find(job.task))
    with unchanged(name, if_version):
        return _reset(job, actor)


def _reset(job: Job, actor: str) -> Job:
    broken: list[Job] = []

    def reset(stored: Job) -> dict[str, Any]:
        if stored.broken_at is not None:  # still, after the gate was asked
            broken.append(stored)
        return _as_reset(stored)

    with write_transaction(Engine().using):
        rewrite(Job.objects.filter(pk=job.pk), reset, actor=actor)
        plan_at_once(Job.objects.filter(pk=job.pk))
    job = get_job(job.name)
    if broken:
        after_commit(job_recovered, Job, using=Engine().using, job=job, run=None)
    return job


def reset_jobs(jobs: Sequence[Job], *, actor: str = "") -> tuple[list[Job], list[Refused]]:
    """Reset jobs as `reset_job` does, some hundreds in one transaction; returns those of which something was reset, and
    why others are not: the gate of each task is asked once. A job without failures, problem or lost run stays as it
    is."""
    checked_text("actor", actor)
    asked = {job.task for job in jobs if job.broken_at or job.problem}
    closed = _closed_gates(asked)
    allowed = [job.pk for job in jobs if not ((job.broken_at or job.problem) and job.task in closed)]
    found: list[Job] = []
    for start in range(0, len(allowed), PAUSED_AT_ONCE):
        rows = Job.objects.filter(pk__in=allowed[start : start + PAUSED_AT_ONCE]).order_by("pk")
        found += _all_reset(rows, actor, open_gates=asked - closed.keys())
    return told_of(found), [closed[task] for task in sorted(closed)]


def _all_reset(rows: QuerySet[Job], actor: str, *, open_gates: set[str]) -> list[Job]:
    living, was_broken = _counted_once(rows), dict[int, bool]()

    def reset(job: Job) -> dict[str, Any]:
        count = living()[job.pk]
        came_since = (job.broken_at or job.problem) and job.task not in open_gates
        if came_since or not _has_to_reset(job, count):
            return {}
        was_broken[job.pk] = job.broken_at is not None
        return _as_reset(job, count)

    with write_transaction(Engine().using):
        rewrite(rows, reset, actor=actor)
        planned = plan_at_once(rows.all())
    found = _as_they_are(was_broken, planned)
    for job in found:
        if was_broken[job.pk]:
            after_commit(job_recovered, Job, using=Engine().using, job=job, run=None)
    return found


def _as_they_are(pks: Collection[int], planned: Iterable[Job]) -> list[Job]:
    """Return jobs as the transaction has left them: those that it has `planned` are known, the others are read."""
    known = {job.pk: job for job in planned}
    unknown = Job.objects.filter(pk__in=[pk for pk in pks if pk not in known])
    known |= {job.pk: job for job in read_rows(unknown)}
    return [known[pk] for pk in sorted(pks) if pk in known]


def _counted_once(rows: QuerySet[Job]) -> Callable[[], Counter[int]]:
    """Return what counts the living runs of the jobs. `rewrite` asks when it has locked all of them: one query."""
    return cache(lambda: RunLog.objects.using(rows.db).filter(job_id__in=rows.order_by().values("pk")).living_by_job())


def _has_to_reset(job: Job, living: int) -> bool:
    has_failed = job.consecutive_failures or job.last_errors or job.last_status in FAILURES
    return bool(job.broken_at or job.problem or has_failed or job.active_runs != living)


def _as_reset(job: Job, living: int | None = None) -> dict[str, Any]:
    begin = None if job.broken_at or job.problem else WHERE_IT_GOES_ON
    reset = {"broken_at": None, "consecutive_failures": 0, "problem": ""}
    return {**reset, **to_replan(begin), **true_count(job, living)}


def pause_group(name: str, *, until: datetime | None = None, reason: str = "", actor: str = "") -> Group:
    """Stop every job of a group from starting by its plan, also jobs that join it later. Idempotent.

    Nothing need name the group yet: a deploy may pause it before its jobs are made. Raises InvalidOption for the empty
    name, which is no group: `pause_all` stops everything.
    """
    return _pause_group(_checked_name(name), until, reason, actor)


def resume_group(name: str, *, actor: str = "") -> bool:
    """End the pause of a group and plan its jobs from now; False when it was not paused.

    Raises InvalidOption for the empty name, as `pause_group` does.
    """
    return _resume_group(_checked_name(name), actor)


def pause_all(*, until: datetime | None = None, reason: str = "", actor: str = "") -> Group:
    """Stop every job from starting by its plan. Runs by hand stay possible."""
    return _pause_group(EVERYTHING, until, reason, actor)


def resume_all(*, actor: str = "") -> bool:
    """End the pause of everything; pauses of single jobs and groups stay."""
    return _resume_group(EVERYTHING, actor)


def _checked_name(group: str) -> str:
    """Jobs without a group have its name empty, and who stops the group of one of them does not mean everything."""
    if checked_group(group) == EVERYTHING:
        raise InvalidOption("the group has no name; to pause or resume everything, use pause_all or resume_all.")
    return group


def _pause_group(name: str, until: datetime | None, reason: str, actor: str) -> Group:
    using, groups = Engine().using, Group.objects.filter(name=name)
    pause = begun_pause(shared_now(using), until, reason, actor)
    with write_transaction(using):
        Group.objects.get_or_create(name=name)
        group = locked(groups).get()
        columns = pause(group)
        if any(getattr(group, column) != value for column, value in columns.items()):
            groups.update(**columns)
            write_events(using, [event(group, EventKind.PAUSED, None, **pause_data(columns))])
        group.refresh_from_db()
    after_commit(group_paused, Group, using=Engine().using, group=group)
    return group


def _resume_group(name: str, actor: str) -> bool:
    engine = Engine()
    checked_text("actor", actor)
    with write_transaction(engine.using):
        resumed = resume_group_row(engine, name, shared_now(engine.using), actor)
        if resumed:
            plan_at_once(Job.objects.all() if name == EVERYTHING else Job.objects.filter(in_groups([name])))
    announce(engine.using)
    return resumed
