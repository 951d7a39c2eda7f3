"""The health banner: what is wrong with the scheduler as a whole, in one line each."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, models
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin.attention import stuck_jobs
from scheduler.admin.instants import rough, with_times
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.engine.held import pause_words, paused_groups
from scheduler.engine.overdue import overdue
from scheduler.models import Instance, Job
from scheduler.runtime import local, startup

CLOCK_LIMIT = 1.0


@dataclass(frozen=True, slots=True)
class Notice:
    """One line of the banner; `tone` is bad, warn, quiet or good."""

    tone: str
    icon: str
    text: str
    query: str = ""
    """The filter of the jobs list that shows the jobs meant."""
    paused: bool = False
    group: str = ""
    """What is paused, so that it can be resumed: a group, or everything."""


def notices(now: datetime) -> list[Notice]:
    """Return the banner. A few small queries, whatever the number of jobs and runs."""
    try:
        return [*_instances(now), *_pauses(), *_jobs(now), *_clock()]
    except DatabaseError as error:
        return [Notice("bad", "✖", _("The database does not answer: {error}").format(error=type(error).__name__))]


def _instances(now: datetime) -> Iterator[Notice]:
    alive = list(Instance.objects.dispatching().alive(Engine.dead_before(now)).defer("tasks"))
    hanging = [one for one in alive if one.hangs(now)]
    for one in hanging:
        text = _("The dispatcher of {instance} has looked for no due jobs for {time}.")
        yield Notice("bad", "✖", text.format(instance=one, time=rough(one.silence(now))))
    if running := len(alive) - len(hanging):
        text = ngettext("%d live instance runs the scheduler.", "%d live instances run the scheduler.", running)
        yield Notice("good", "✔", text % running)
    if alive:
        return
    if not conf.ENABLED:
        reason = _("SCHEDULER_ENABLED is off")
        yield Notice("quiet", "○", _("The scheduler is disabled: {reason}.").format(reason=reason))
        return
    decision = startup.decision()
    here = decision.reason if decision and not decision.start else ""
    detail = _(" This process does not run it: {reason}.").format(reason=here) if here else ""
    yield Notice("bad", "✖", _("No live instance: nothing runs until a server process starts.") + detail)


def _pauses() -> Iterator[Notice]:
    for group in paused_groups().values():
        yield Notice("warn", "❚❚", with_times(pause_words(group)), paused=True, group=group.name)


def _jobs(now: datetime) -> Iterator[Notice]:
    late = overdue(now)
    counts = Job.objects.aggregate(
        broken=models.Count("pk", filter=models.Q(broken_at__isnull=False)),
        overdue=models.Count("pk", filter=late),
        invalid=models.Count("pk", filter=~models.Q(problem="") & models.Q(orphaned_at__isnull=True)),
        orphaned=models.Count("pk", filter=models.Q(orphaned_at__isnull=False)),
        oldest=models.Min("next_start_at", filter=late),
    )
    counts["stuck"] = len({row["job"] for row in stuck_jobs()})
    words = {
        "broken": ngettext("%d broken job", "%d broken jobs", counts["broken"]),
        "stuck": ngettext("%d stuck job", "%d stuck jobs", counts["stuck"]),
        "overdue": ngettext("%d overdue job", "%d overdue jobs", counts["overdue"]),
        "invalid": ngettext("%d invalid job", "%d invalid jobs", counts["invalid"]),
        "orphaned": ngettext("%d orphaned job", "%d orphaned jobs", counts["orphaned"]),
    }
    for state, phrase in words.items():
        if not counts[state]:
            continue
        text = phrase % counts[state]
        if state == "overdue" and counts["oldest"]:
            text += " " + _("(the oldest by {time})").format(time=rough(now - counts["oldest"]))
        tone = "warn" if state in ("overdue", "orphaned") else "bad"
        yield Notice(tone, "⚠" if tone == "warn" else "✖", text, f"state={state}")


def _clock() -> Iterator[Notice]:
    runner = local.current()
    offset = runner.clock.offset.total_seconds() if runner is not None else 0.0
    if abs(offset) > CLOCK_LIMIT:
        words = _("The clock of this process and that of the database differ by {seconds} s.")
        yield Notice("warn", "⚠", words.format(seconds=f"{offset:.1f}"))
