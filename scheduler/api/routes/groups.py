"""Groups, and everything: how they stand, pause and resume."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Body, Path

from scheduler.api.among import jobs_among, refuse_unless_all
from scheduler.api.rights import Right, actor_of
from scheduler.api.router import operation
from scheduler.api.schemas.base import Json
from scheduler.api.schemas.group import GroupOut, GroupsOut, group_listed, group_out
from scheduler.api.schemas.run import PauseGiven
from scheduler.engine import control
from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.views.at_work.groups import groups_at_work
from scheduler.engine.views.pauses import paused_groups
from scheduler.models import EVERYTHING, Job

GroupName = Annotated[str, Path(description="The name of the group.")]
Pause = Annotated[PauseGiven, Body(PauseGiven())]


@operation("GET", "/groups", right=Right.VIEW, answers={200: GroupsOut})
def list_groups(request: HttpRequest) -> Json:
    """List the groups by name, with their limits and pauses, and how many runs they have.

    Those that no job has are listed where they are limited or paused. It costs a constant number of queries.
    """
    using, among = Engine().using, jobs_among(request, Right.VIEW)
    jobs = Job.objects.using(using) if among is None else among
    found = groups_at_work(jobs, paused_groups(), shared_now(using), unused=among is None)
    return {"items": [group_listed(group) for group in sorted(found, key=lambda group: group.name)]}


@operation("POST", "/groups/{path:group}/pause", right=Right.PAUSE, answers={200: GroupOut}, refuses=[404])
def pause_group(request: HttpRequest, group: GroupName, body: Pause) -> Json:
    """Stop every job of a group from starting, also those that join it later.

    A name that no job, no task, no setting and no queue has is a 404.
    """
    _refuse_unknown(request, group)
    control.pause_group(group, until=body.until, reason=body.reason, actor=actor_of(request))
    return _told(group)


@operation("POST", "/groups/{path:group}/resume", right=Right.PAUSE, answers={200: GroupOut}, refuses=[404])
def resume_group(request: HttpRequest, group: GroupName) -> Json:
    """End the pause of a group."""
    _refuse_unknown(request, group)
    control.resume_group(group, actor=actor_of(request))
    return _told(group)


@operation("POST", "/pause", right=Right.PAUSE, answers={200: GroupOut})
def pause_everything(request: HttpRequest, body: Pause) -> Json:
    """Stop every job from starting."""
    refuse_unless_all(request, Right.PAUSE)
    control.pause_all(until=body.until, reason=body.reason, actor=actor_of(request))
    return _told(EVERYTHING)


@operation("POST", "/resume", right=Right.PAUSE, answers={200: GroupOut})
def resume_everything(request: HttpRequest) -> Json:
    """End the pause of everything; those of single jobs and groups stay."""
    refuse_unless_all(request, Right.PAUSE)
    control.resume_all(actor=actor_of(request))
    return _told(EVERYTHING)


def _refuse_unknown(request: HttpRequest, group: str) -> None:
    """Near names may be those of jobs that the caller may not reach."""
    control.refuse_unknown_group(group, hints=jobs_among(request, Right.PAUSE) is None)


def _told(name: str) -> Json:
    return group_out(name, paused_groups().get(name))
