"""Problem: one thing that is wrong. The tables below say how grave each kind is, and its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy, override

from scheduler.safetext import masked, visible
from scheduler.schedules.duration import length_words

LONGEST = 300
"""Characters of a message that a problem quotes."""


class Severity(StrEnum):
    """How grave a problem is."""

    DEGRADED = "degraded"
    """Due work is not being run: health answers 503."""
    WARNING = "warning"
    """Listed; health stays 200."""


SEVERITIES: Mapping[str, Severity] = {
    "database_away": Severity.DEGRADED,
    "must_migrate": Severity.DEGRADED,
    "read_only": Severity.DEGRADED,
    "no_instance": Severity.DEGRADED,
    "group_not_taken": Severity.DEGRADED,
    "ungrouped_not_taken": Severity.DEGRADED,
    "tasks_due": Severity.DEGRADED,
    "dispatcher_silent": Severity.DEGRADED,
    "instance_failing": Severity.DEGRADED,
    "start_failed": Severity.DEGRADED,
    "not_registered": Severity.DEGRADED,
    "refused": Severity.DEGRADED,
    "service_failing": Severity.DEGRADED,
    "service_hangs": Severity.DEGRADED,
    "service_dead": Severity.DEGRADED,
    "workers_held": Severity.DEGRADED,
    "lock_away": Severity.DEGRADED,
    "activity_store_away": Severity.DEGRADED,
    "module_failed": Severity.DEGRADED,
    "orphaned_by_module": Severity.DEGRADED,
    "orphaned": Severity.WARNING,
    "broken": Severity.DEGRADED,
    "invalid": Severity.DEGRADED,
    "put_aside": Severity.DEGRADED,
    "left_to_others": Severity.WARNING,
    "stuck": Severity.DEGRADED,
    "overdue": Severity.DEGRADED,
    "failing": Severity.DEGRADED,
    "not_fresh": Severity.DEGRADED,
    "deadline_missed": Severity.DEGRADED,
    "slower": Severity.WARNING,
    "miscounted": Severity.DEGRADED,
    "activity_unreadable": Severity.WARNING,
    "redis_shared": Severity.WARNING,
    "notices_waiting": Severity.WARNING,
    "notices_given_up": Severity.WARNING,
    "ping_failing": Severity.WARNING,
    "unknown_job": Severity.WARNING,
    "clock_skew": Severity.WARNING,
    "zones_differ": Severity.WARNING,
}
"""The one table of what makes health answer 503."""

WORDS: Mapping[str, Any] = {
    "database_away": _("the database does not answer: {error}"),
    "must_migrate": _("the tables of the scheduler are missing or of another release: run `python manage.py migrate`"),
    "read_only": _("the database is read-only: nothing can be claimed ({error})"),
    "no_instance": _("no live instance runs the scheduler"),
    "group_not_taken": _("no live process takes the group {subject}, of which jobs are due: {jobs}"),
    "ungrouped_not_taken": _("no live process takes jobs without a group, of which some are due: {jobs}"),
    "tasks_due": ngettext_lazy(
        "{tasks} task of the queue {subject} is due, the oldest for {time}, and none runs",
        "{tasks} tasks of the queue {subject} are due, the oldest for {time}, and none runs",
        "tasks",
    ),
    "dispatcher_silent": _("the dispatcher of {subject} has not completed a tick for {time}"),
    "instance_failing": _("a thread of {subject} fails again and again: {error}"),
    "start_failed": _("this process serves and cannot run the scheduler: {reason}"),
    "not_registered": _("this process runs the scheduler and is not in the table of instances: it claims nothing"),
    "refused": _("{reason}"),
    "service_failing": _("the {subject} of this process has failed {rounds} times in a row: {error}"),
    "service_hangs": _("the {subject} thread hangs, and its replacement too"),
    "service_dead": _("the {subject} thread is dead"),
    "workers_held": _("every worker of this process is held by a run that is over its time"),
    "lock_away": _("the lock of slots cannot be asked: {error}"),
    "activity_store_away": _("the store of activities does not answer, so no run for a user starts: {error}"),
    "activity_unreadable": ngettext_lazy(
        "{entries} entry of a user of {subject} could not be read and is put aside",
        "{entries} entries of users of {subject} could not be read and are put aside",
        "entries",
    ),
    "module_failed": _("the tasks of {subject} are not available: {error}"),
    "orphaned_by_module": _("{subject} does not run, because {module} failed"),
    "orphaned": _("{subject} is orphaned: no live process has its task"),
    "broken": ngettext_lazy(
        "{subject} is broken: {failures} failure", "{subject} is broken: {failures} failures in a row", "failures"
    ),
    "invalid": _("{subject} cannot run: {error}"),
    "put_aside": _("{subject} cannot run {told}"),
    "left_to_others": _("{subject} cannot run {told}"),
    "stuck": _("{subject} is stuck"),
    "overdue": _("{subject} is overdue by {time}"),
    "failing": ngettext_lazy(
        "{subject} fails: its last outcome is “{status}”, {failures} failure",
        "{subject} fails: its last outcome is “{status}”, {failures} failures in a row",
        "failures",
    ),
    "not_fresh": _("{subject} has not succeeded for {time}; it should at least every {fresh}"),
    "deadline_missed": _("{subject} had not succeeded by {deadline}, and has not since"),
    "slower": _("{subject} is slower than usual: {time}, where runs take less than {slow_after}"),
    "miscounted": ngettext_lazy(
        "{subject} counts {active} living run and has {living}: it is corrected within a lease",
        "{subject} counts {active} living runs and has {living}: it is corrected within a lease",
        "active",
    ),
    "redis_shared": _(
        "the Redis of {subject} is shared with another project ({others}): jobs of equal names block each other"
    ),
    "notices_waiting": ngettext_lazy(
        "{subject}: {waiting} notice has waited since {since}: {error}",
        "{subject}: {waiting} notices have waited since {since}: {error}",
        "waiting",
    ),
    "notices_given_up": ngettext_lazy(
        "{subject}: {lost} notice of the last day could not be sent, and is given up: {error}",
        "{subject}: {lost} notices of the last day could not be sent, and are given up: {error}",
        "lost",
    ),
    "ping_failing": _("the monitor of {subject} cannot be told how it stands: {error}"),
    "unknown_job": _("{setting} names {subject}, and there is no such job"),
    "clock_skew": _("the clock of this process and that of the database differ by {time}"),
    "zones_differ": _(
        "processes on this database have different values of TIME_ZONE, {zones}: calendar jobs without a zone of their "
        "own follow one or the other; give all processes the same"
    ),
}
MORE = ngettext_lazy("{count} more job of the kind “{code}”", "{count} more jobs of the kind “{code}”", "count")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `str()` is its English text; `subject` names what it is about: a job, instance, service
    or module. One that is `rest` ends a long list: it stands for `count` further jobs, and has no subject.
    """

    code: str
    subject: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    rest: bool = False
    shown: str = ""
    """What people read in the place of the subject, where that is the name of a job for machines."""

    @property
    def severity(self) -> Severity:
        """Whether it makes health answer 503."""
        return SEVERITIES[self.code]

    @property
    def text(self) -> str:
        """What is wrong, in English."""
        with override("en"):
            return self.said()

    def said(self) -> str:
        """Return what is wrong in the language of the reader."""
        if self.rest:
            return MORE.format(count=self.count, code=self.code)
        values = {name: length_words(one) if isinstance(one, timedelta) else one for name, one in self.values.items()}
        words: str = WORDS[self.code].format(subject=self.shown or self.subject, **values)
        return words

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, str]:
        """Return JSON-ready data."""
        return {"code": self.code, "severity": str(self.severity), "subject": self.subject, "text": self.text}


def cut(text: object) -> str:
    """Return a message in one line, short enough for a list, without passwords and control characters."""
    line = visible(" ".join(masked(str(text)[: 4 * LONGEST]).split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
