"""Pause, resume and reset: a person's stop of a job, a group or everything, and the way back."""

from datetime import datetime
from typing import Any

from scheduler.arguments import checked_group, checked_text, optional_instant
from scheduler.engine.base import Engine
from scheduler.engine.control.definition import ask_gate, get_job
from scheduler.engine.dbtime import shared_now
from scheduler.engine.limits import resume_group_row
from scheduler.exceptions import InvalidOption
from scheduler.models import EVERYTHING, UNPLANNED, Group, Job
from scheduler.models.job import WHERE_IT_GOES_ON, announce
from scheduler.registry import registry
from scheduler.signals import after_commit, group_paused, job_paused, job_recovered, job_resumed

NOT_PAUSED: dict[str, Any] = {"paused_at": None, "paused_until": None, "paused_by": "", "pause_reason": ""}


def pause_job(name: str, *, until: datetime | None = None, reason: str = "", actor: str = "") -> Job:
    """Stop a job from starting, at once, until `until` (aware) or until it is resumed. Idempotent."""
    job = get_job(name)
    pause = _pause(job, until, reason, actor)
    Job.objects.filter(pk=job.pk).update(**pause, next_run_at=None, next_start_at=pause["paused_until"])
    job = get_job(name)
    after_commit(job_paused, Job, using=Engine().using, job=job)
    return job


def resume_job(name: str, *, actor: str = "") -> Job:
    """End a pause and plan the job from now; slots that passed meanwhile are not made up for. Idempotent.

    A broken job is reset too: who resumes it wants it to run. Raises Refused with code `gate_closed`.
    """
    checked_text("actor", actor)
    job = get_job(name)
    if job.broken_at or job.paused_at:
        ask_gate(registry.find(job.task))
    if job.broken_at is not None:
        reset_job(name)
    if job.paused_at is None:
        return get_job(name)
    now = shared_now(Engine().using)
    ended_at = min(now, job.paused_until or now)
    Job.objects.filter(pk=job.pk).update(**NOT_PAUSED, next_run_at=ended_at, next_start_at=UNPLANNED)
    job = get_job(name)
    after_commit(job_resumed, Job, using=Engine().using, job=job, actor=actor)
    return job


def reset_job(name: str) -> Job:
    """Let a broken job run again: failures to 0, planned from now. What is due of one that was not stays due."""
    job = get_job(name)
    was_broken = job.broken_at is not None
    begin = None if was_broken or job.problem else WHERE_IT_GOES_ON
    reset = {"broken_at": None, "consecutive_failures": 0, "problem": "", "next_start_at": UNPLANNED}
    Job.objects.filter(pk=job.pk).update(**reset, next_run_at=begin)
    job = get_job(name)
    if was_broken:
        after_commit(job_recovered, Job, using=Engine().using, job=job, run=None)
    return job


def pause_group(name: str, *, until: datetime | None = None, reason: str = "", actor: str = "") -> Group:
    """Stop every job of a group from starting by its plan, also jobs that join it later. Idempotent.

    Raises InvalidOption for the empty name, which is no group: `pause_all` stops everything.
    """
    return _pause_group(_checked_name(name), until, reason, actor)


def resume_group(name: str) -> bool:
    """End the pause of a group and plan its jobs from now; False when it was not paused.

    Raises InvalidOption for the empty name, as `pause_group` does.
    """
    return _resume_group(_checked_name(name))


def pause_all(*, until: datetime | None = None, reason: str = "", actor: str = "") -> Group:
    """Stop every job from starting by its plan. Runs by hand stay possible."""
    return _pause_group(EVERYTHING, until, reason, actor)


def resume_all() -> bool:
    """End the pause of everything; pauses of single jobs and groups stay."""
    return _resume_group(EVERYTHING)


def _checked_name(group: str) -> str:
    """Jobs without a group have its name empty, and who stops the group of one of them does not mean everything."""
    if checked_group(group) == EVERYTHING:
        raise InvalidOption("the group has no name; to pause or resume everything, use pause_all or resume_all.")
    return group


def _pause_group(name: str, until: datetime | None, reason: str, actor: str) -> Group:
    pause = _pause(Group.objects.filter(name=name).first() or Group(), until, reason, actor)
    Group.objects.get_or_create(name=name)
    Group.objects.filter(name=name).update(**pause)
    group = Group.objects.get(name=name)
    after_commit(group_paused, Group, using=Engine().using, group=group)
    return group


def _resume_group(name: str) -> bool:
    engine = Engine()
    resumed = resume_group_row(engine, name, shared_now(engine.using))
    announce(engine.using)
    return resumed


def _pause(stopped: Job | Group, until: datetime | None, reason: str, actor: str) -> dict[str, Any]:
    """Return the columns of a pause. One that goes on keeps its beginning; one cannot end before it was asked for."""
    end, now = optional_instant("until", until), shared_now(Engine().using)
    is_over = stopped.paused_until is not None and stopped.paused_until <= now
    return {
        "paused_at": now if is_over else stopped.paused_at or now,
        "paused_until": None if end is None else max(end, now),
        "pause_reason": checked_text("reason", reason)[:500],
        "paused_by": checked_text("actor", actor)[:150],
    }
