"""The health banner: who runs the scheduler, and its problems as health tells them, in one line each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler.admin.page_context import now_of, paused_of
from scheduler.admin.times import with_times
from scheduler.engine.views.datetimes import lasted
from scheduler.engine.views.pauses import Hold
from scheduler.models import EVERYTHING, Group, Job, in_groups
from scheduler.problems import Problem, Severity, Survey, survey
from scheduler.runtime.startup import arm

NAMED = 3
"""So many jobs of a kind are named; the link shows all."""
OF_INSTANCES = ("no_instance", "dispatcher_silent")
OF_JOBS = {
    "broken": "broken",
    "stuck": "stuck",
    "overdue": "overdue",
    "failing": "failing",
    "not_fresh": "not_fresh",
    "deadline_missed": "deadline_missed",
    "slower": "slower",
    "invalid": "invalid",
    "miscounted": "",
    "orphaned_by_module": "orphaned",
    "orphaned": "orphaned",
}
"""The problems of jobs, each with the state by which the jobs list filters them."""


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


def notices(request: HttpRequest, seen: QuerySet[Job] | None = None) -> list[Notice]:
    """Return the banner: who runs the scheduler, what is paused, and the problems that health tells too.

    To a person from whom the project hides jobs it tells of those `seen`, as far as health names them.
    """
    now = now_of(request)
    found = survey(now, paused_of(request))
    if found.now is None:
        return list(_others(found.problems))
    told = [one for one in found.problems if one.code not in OF_INSTANCES]
    of_jobs = [one for one in told if one.code in OF_JOBS]
    others = [one for one in told if one.code not in OF_JOBS]
    paused = list(found.paused.values())
    if seen is not None:
        of_jobs, paused = _about(seen, of_jobs), _holding(seen, paused)
    return [*_instances(found, now), *_pauses(paused), *_jobs(of_jobs), *_others(others)]


def _about(seen: QuerySet[Job], problems: Sequence[Problem]) -> list[Problem]:
    names = set(seen.filter(name__in=[one.subject for one in problems]).values_list("name", flat=True))
    return [one for one in problems if one.subject in names]


def _holding(seen: QuerySet[Job], paused: Sequence[Group]) -> list[Group]:
    groups = {job.in_group for job in seen.filter(in_groups(group.name for group in paused)).only("group")}
    return [group for group in paused if group.name in groups | {EVERYTHING}]


def _instances(found: Survey, now: datetime) -> Iterator[Notice]:
    alive = found.running
    hanging = [one for one in alive if one.hangs(now)]
    for one in hanging:
        text = _("The dispatcher of {instance} has looked for no due jobs for {time}.")
        yield Notice("bad", "✖", text.format(instance=one, time=lasted(one.silence(now), parts=1)))
    if running := len(alive) - len(hanging):
        text = ngettext("%d live instance runs the scheduler.", "%d live instances run the scheduler.", running)
        yield Notice("good", "✔", text % running)
    if alive:
        return
    if found.is_disabled:
        reason = _("SCHEDULER_ENABLED is off")
        yield Notice("quiet", "○", _("The scheduler is disabled: {reason}.").format(reason=reason))
        return
    decision = arm.decision()
    here = decision.reason if decision and not decision.start else ""
    detail = _(" This process does not run it: {reason}.").format(reason=here) if here else ""
    yield Notice("bad", "✖", _("No live instance: nothing runs until a server process starts.") + detail)


def _pauses(paused: Sequence[Group]) -> Iterator[Notice]:
    for group in paused:
        yield Notice("warn", "❚❚", with_times(str(Hold.of(group))), paused=True, group=group.name)


def _jobs(problems: Sequence[Problem]) -> Iterator[Notice]:
    """One line for each kind: how many jobs, and which."""
    for code, state in OF_JOBS.items():
        alike = [one for one in problems if one.code == code]
        if not alike:
            continue
        count = sum(one.count for one in alike)
        text = _counted(code, count)
        if code == "overdue":
            text += " " + _("(the oldest by {time})").format(time=lasted(alike[0].values["time"], parts=1))
        names = [one.shown or one.subject for one in alike if one.subject][:NAMED]
        text += ": " + ", ".join(names) + ("…" if count > len(names) else "")
        yield _noticed(alike[0].severity, text, f"state={state}" if state else "")


def _counted(code: str, count: int) -> str:
    words = {
        "broken": ngettext("%d broken job", "%d broken jobs", count),
        "stuck": ngettext("%d stuck job", "%d stuck jobs", count),
        "overdue": ngettext("%d overdue job", "%d overdue jobs", count),
        "failing": ngettext("%d failing job", "%d failing jobs", count),
        "not_fresh": ngettext("%d job without a success in time", "%d jobs without a success in time", count),
        "deadline_missed": ngettext("%d job has missed its deadline", "%d jobs have missed their deadline", count),
        "slower": ngettext("%d job is slower than usual", "%d jobs are slower than usual", count),
        "invalid": ngettext("%d invalid job", "%d invalid jobs", count),
        "miscounted": ngettext("%d job with a wrong count of runs", "%d jobs with a wrong count of runs", count),
        "orphaned_by_module": ngettext("%d job whose module failed", "%d jobs whose module failed", count),
        "orphaned": ngettext("%d orphaned job", "%d orphaned jobs", count),
    }
    return words[code] % count


def _others(problems: Sequence[Problem]) -> Iterator[Notice]:
    for one in problems:
        text = one.said()
        yield _noticed(one.severity, text[:1].upper() + text[1:] + ".")


def _noticed(severity: Severity, text: str, query: str = "") -> Notice:
    tone, icon = ("bad", "✖") if severity is Severity.DEGRADED else ("warn", "⚠")
    return Notice(tone, icon, text, query)
