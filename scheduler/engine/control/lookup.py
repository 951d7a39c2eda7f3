"""Lookup: jobs by name, and lists of them."""

from typing import Any

from django.db.models import Q

from scheduler.arguments import checked_flag, checked_text, did_you_mean, is_name
from scheduler.engine.views.history import told_of_name
from scheduler.engine.views.job_view import state_of, told_of
from scheduler.engine.views.pauses import HELD
from scheduler.exceptions import InvalidOption, UnknownJob
from scheduler.models import Job, JobState, in_groups
from scheduler.models.carriers import CARRIERS
from scheduler.registry import registry
from scheduler.safetext import shown


def get_job(name: str) -> Job:
    """Return the job of this name; raises UnknownJob with near names."""
    job = Job.objects.filter(name=name).first() if is_name(name) else None
    if job is None:
        if isinstance(name, str) and name in registry:
            text = f"The task {name!r} is registered; its job is made by `migrate`, or when the scheduler starts."
            raise UnknownJob(text)
        if (told := told_of_name(name)) if is_name(name) else "":
            raise UnknownJob(f"There is no job {shown(name)}. {told}")
        names = {*Job.objects.values_list("name", flat=True), *registry.names()}
        hint = f"{did_you_mean(name, names)}{registry.told_failures()}"
        raise UnknownJob(f"There is no job {shown(name)}.{hint}")
    return told_of([job])[0]


def list_jobs(
    *, state: str | None = None, task: str | None = None, group: str | None = None, enabled: bool | None = None
) -> list[Job]:
    """Return the jobs that all given filters let through, sorted by name; raises InvalidOption for an unknown state
    and for what can be no name.

    `state` is the word of their `view`, `group=""` means jobs without one. Those that only carry tasks that were
    enqueued are left out.
    """
    wanted: dict[str, Any] = {} if task is None else {"task": checked_text("task", task)}
    if enabled is not None:
        wanted["enabled"] = checked_flag("enabled", enabled)
    of_group = Q() if group is None else in_groups([checked_text("group", group)])
    found: Any = Job.objects.filter(of_group, ~CARRIERS, **wanted)
    if state is None:
        return told_of(found)
    word = _checked_state(state)
    return told_of(job for job in found.annotate(is_held=HELD) if state_of(job, job.is_held) == word)


def _checked_state(state: str) -> JobState:
    if state not in JobState.values:
        raise InvalidOption(f"state is {shown(state)}; it must be one of {', '.join(JobState.values)}.")
    return JobState(state)
