"""Writer: what importing an entry does, or would do. The only place that writes, through control."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError

from scheduler.arguments import is_name
from scheduler.engine.base import Engine
from scheduler.engine.control import compare_job, pause_job, set_job
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.db.transactions import is_of_row, write_transaction
from scheduler.exceptions import InvalidOption, Refused, SchedulerError
from scheduler.management.transfer.entry import Entry, Imported, Outcome
from scheduler.management.transfer.outlook import (
    bounds_of,
    next_slot,
    notes_of_clocks,
    notes_of_pause,
    over,
    pause_to_come,
    with_pause,
)
from scheduler.management.transfer.tasks import TaskNames, named_arguments
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.policy.base import differences
from scheduler.registry import Task, registry
from scheduler.safetext import told
from scheduler.schedules import Schedule

POLICY = "policy."
READ_AT_ONCE = 500
"""Jobs that a dry run reads by one query."""
AMONG_COLUMNS = ("kwargs", "enabled", "group", "priority", "description")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Imports entries, each in a transaction of its own: what is wrong with one keeps no other out.

    `actor` is who the history names. Without `apply` nothing is written, and everything is checked all the same.
    """

    tasks: TaskNames
    actor: str
    apply: bool = False
    replace: bool = False

    def import_all(self, entries: Sequence[Entry]) -> list[Imported]:
        """Return what became of each entry, or would."""
        names: dict[str, str] = {}
        found = self._with_jobs(entries)
        return [self._import(self._unless_twice(entry, names), job, now) for entry, job, now in found]

    def _with_jobs(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Job | None, datetime]]:
        """Yield each entry, the job of its name and the time. A job that may be written is read right before."""
        using, at_once = Engine().using, 1 if self.apply else READ_AT_ONCE
        for start in range(0, len(entries), at_once):
            part = entries[start : start + at_once]
            names = [entry.name for entry in part if is_name(entry.name) and not (entry.refused or entry.over)]
            jobs = {job.name: job for job in Job.objects.using(using).filter(name__in=names)}
            now = shared_now(using)
            yield from ((entry, jobs.get(entry.name), now) for entry in part)

    def _unless_twice(self, entry: Entry, names: dict[str, str]) -> Entry:
        first = names.setdefault(entry.name, entry.place)
        if first == entry.place or not entry.name or entry.refused or entry.over:
            return entry
        return replace(entry, refused=f"{first} has the same name.")

    def _import(self, entry: Entry, job: Job | None, now: datetime) -> Imported:
        if entry.refused or entry.over:
            outcome = Outcome.REFUSED if entry.refused else Outcome.OVER
            return Imported(entry=entry, outcome=outcome, reason=entry.refused or entry.over, notes=entry.notes)
        try:
            return self._carried(entry, job, now)
        except SchedulerError as error:
            reason = told(error)
        except (ValueError, TypeError, OverflowError, DatabaseError) as error:
            if isinstance(error, DatabaseError) and not is_of_row(error):
                raise
            reason = f"{type(error).__name__}: {told(error)}"
        return Imported(entry=entry, outcome=Outcome.REFUSED, reason=reason, notes=entry.notes)

    def _carried(self, entry: Entry, job: Job | None, now: datetime) -> Imported:
        task, note = self.tasks.find(entry.task, entry.aliases, mapped_only=entry.mapped_only)
        if task is None:
            text = "The file of --tasks leaves it out."
            return Imported(entry=entry, outcome=Outcome.OVER, reason=text, notes=entry.notes)
        schedule, options = self._definition(entry, task, job)
        entry = replace(
            entry,
            schedule=schedule,
            said={**entry.said, "enabled": options.get("enabled", True)},
            pause=pause_to_come(entry.pause, now),
            notes=(*entry.notes, *filter(None, [note])),
        )
        changes, bounds = compare_job(job, entry.name, schedule=schedule, **options), bounds_of(options)
        if changes != [] and (reason := over(schedule, bounds, now)):
            return Imported(entry=entry, outcome=Outcome.OVER, reason=reason, notes=entry.notes)
        changes = with_pause(changes, job, entry.pause)
        outcome = self._outcome(changes)
        is_written = outcome in (Outcome.CREATED, Outcome.REPLACED)
        notes, slot = list(notes_of_clocks(schedule, now, entry)), None
        if is_written:
            slot = next_slot(entry, schedule, bounds, job, now)
            notes = [*entry.beginnings, *notes_of_pause(entry.pause), *notes]
        if self.apply and is_written:  # when nothing can go wrong any more but the writing
            self._write(entry, schedule=schedule, **options)
        return Imported(
            entry=entry, outcome=outcome, changes=tuple(changes or ()), next_slot=slot, notes=(*entry.notes, *notes)
        )

    def _write(self, entry: Entry, **definition: Any) -> None:
        """Write a job together with its pause: killed in between, the job would run."""
        pause = entry.pause
        with write_transaction(Engine().using) if pause else nullcontext():
            set_job(entry.name, actor=self.actor, **definition)
            if pause:
                pause_job(entry.name, until=pause.until, reason=pause.reason, actor=pause.by or self.actor)

    def _outcome(self, changes: list[str] | None) -> Outcome:
        if changes is None:
            return Outcome.CREATED
        if not changes:
            return Outcome.UNCHANGED
        return Outcome.REPLACED if self.replace else Outcome.KEPT

    def _definition(self, entry: Entry, task: Task, job: Job | None) -> tuple[Schedule, dict[str, Any]]:
        """Return the schedule, and the arguments of `set_job` besides."""
        said = dict(entry.said)
        if entry.args:
            said["kwargs"] = named_arguments(task, entry.args, said.get("kwargs", {}))
        said |= {"schedule": entry.schedule, "task": task.name}
        if job is None:
            if entry.name in registry:
                raise Refused(
                    f"The code registers {entry.name!r} and makes its job: run `migrate` or start the scheduler once, "
                    "then import again.",
                    code="code_owned",
                )
        elif job.source or not entry.whole:
            said = _definition_of(job) | _changed_by_people(entry, said, is_of_code=bool(job.source))
        schedule = said.pop("schedule")
        if isinstance(schedule, Unreadable) or schedule is None:
            raise InvalidOption(f"the schedule of the job {entry.name!r} that is here cannot be read.")
        return _on_the_grid_it_has(schedule, job), said


def _definition_of(job: Job) -> dict[str, Any]:
    """Return the definition that a job has, as `set_job` takes it."""
    if isinstance(job.policy, Unreadable):
        raise InvalidOption(f"the policy of the job {job.name!r} that is here cannot be read.")
    columns = {name: getattr(job, name) for name in ("task", "schedule", *AMONG_COLUMNS)}
    return columns | differences(job.policy)


def _changed_by_people(entry: Entry, said: dict[str, Any], *, is_of_code: bool) -> dict[str, Any]:
    """Return what an entry says, but of what code says there and here only what people had changed of it."""
    if not is_of_code or entry.overridden is None:
        return said
    if "policy" in entry.overridden:
        return {name: value for name, value in said.items() if name in entry.overridden or name not in _columns()}
    return {name: value for name, value in said.items() if {name, f"{POLICY}{name}"} & entry.overridden}


def _columns() -> set[str]:
    return {"task", "schedule", *AMONG_COLUMNS}


def _on_the_grid_it_has(schedule: Schedule, job: Job | None) -> Schedule:
    """Return the schedule of the job, where it has the slots of the given one: its anchor is a column of its own."""
    if job is None or not schedule.is_interval or isinstance(job.schedule, Unreadable):
        return schedule
    bound: Schedule = job.schedule.bind(anchor=job.anchor_at, timezone="UTC") if job.schedule.is_interval else schedule
    return job.schedule if bound == schedule else schedule


def counted(results: Iterable[Imported]) -> dict[str, int]:
    """Return how many entries had each outcome."""
    found = dict.fromkeys((outcome.value for outcome in Outcome), 0)
    for one in results:
        found[one.outcome.value] += 1
    return found


def carried(results: Iterable[Imported]) -> Iterator[Imported]:
    """Yield what is here, or would be."""
    return (one for one in results if one.outcome.is_carried)
