"""Known groups: those that a job, a task, a setting or a queue has, and those that were ever paused."""

from collections.abc import Collection

from scheduler.arguments import checked_group, did_you_mean
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.tasks.queues import groups_of_queues
from scheduler.exceptions import UnknownGroup
from scheduler.models import Group, Job
from scheduler.registry import registry
from scheduler.safetext import shown


def known_groups(*, stored: bool = True) -> set[str]:
    """Return the names of all groups that something has; with `stored=False` without asking the database."""
    known = {conf.DEFAULT_GROUP, *conf.GROUPS, *groups_of_queues(), *(task.group for task in registry)}
    if stored:
        using = Engine().using
        known |= set(Job.objects.using(using).order_by().values_list("group", flat=True).distinct())
        known |= set(Group.objects.using(using).values_list("name", flat=True))
    return known - {""}


def refuse_unknown_group(name: str, *, hints: bool = True) -> None:
    """Raise UnknownGroup, with near names unless they are to be kept, for a group that nothing has.

    For surfaces, where such a name is a slip. `pause_group` takes it: the jobs of the group may come later.
    """
    known = known_groups()
    if checked_group(name) not in known:
        raise UnknownGroup(unknown_group(name, known if hints else ()))


def unknown_group(name: str, known: Collection[str]) -> str:
    """Return what is said of a name that nothing has, with those among `known` that may be meant."""
    return f"No job and no setting names the group {shown(name)}.{did_you_mean(name, sorted(known))}"
