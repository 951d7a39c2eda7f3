"""Held: the jobs that nothing stops but a pause of their group, or of everything."""

from collections.abc import Mapping

from django.db.models import Q
from django.utils.translation import gettext as _

from scheduler.engine.moments import said
from scheduler.models import EVERYTHING, Group, Job, JobState

Paused = Mapping[str, Group]
"""The paused groups by name; that of everything among them."""


def paused_groups() -> Paused:
    """Return the paused groups, in one query for all jobs."""
    return {group.name: group for group in Group.objects.paused().order_by("name")}


def held_by(job: Job, paused: Paused) -> Group | None:
    """Return the group whose pause keeps a job from starting by its plan; None where the job does not start anyway."""
    if job.job_state not in (JobState.SCHEDULED, JobState.RUNNING):
        return None
    return paused.get(job.group) or paused.get(EVERYTHING)


def state_of(job: Job, held: Group | None) -> JobState:
    """Return the state of a job in one word, where a pause of its group counts as its own would."""
    state = job.job_state
    return JobState.PAUSED if held and state == JobState.SCHEDULED else state


def stopped_by(paused: Paused) -> Q:
    """Return the condition on jobs that are paused: by themselves, or held."""
    goes_on = Q(enabled=True, broken_at=None, orphaned_at=None, problem="")
    held = goes_on if EVERYTHING in paused else goes_on & Q(group__in=list(paused))
    return Q(paused_at__isnull=False) | held


def is_paused(group: Group) -> str:
    """Say what is paused."""
    what = _("Everything") if group.name == EVERYTHING else _("Group {name}").format(name=group.name)
    return _("{what} is paused").format(what=what)


def pause_words(group: Group) -> str:
    """Say what is paused, by whom, until when, and why."""
    words = is_paused(group)
    if group.paused_by:
        words += " " + _("by {name}").format(name=group.paused_by)
    if group.paused_until:
        words += " " + _("until {time}").format(time=said(group.paused_until))
    return words + (f": {group.pause_reason}" if group.pause_reason else ".")
