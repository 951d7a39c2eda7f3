"""Show when jobs run next and how they stand."""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, list_jobs, waiting_users
from scheduler.engine.dbtime import shared_now
from scheduler.engine.explain import explain_slot, parse_moment
from scheduler.engine.held import held_by, pause_words, paused_groups, state_of
from scheduler.engine.plan import schedule_of
from scheduler.engine.tocome import slots_to_come
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.health import SchedulerStatus, get_scheduler_status
from scheduler.management.output import SchedulerCommand, moment, relative
from scheduler.models import UNPLANNED, Group, Job

MOST_SLOTS = 1000
"""Of each job, in one answer."""


class Command(SchedulerCommand):
    """Prints the jobs, their next slots, or the state of the scheduler."""

    help = "Show the schedule: all jobs, the next slots of each, or the state of the scheduler."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="only this job")
        parser.add_argument("--next", type=int, metavar="N", help="the next N slots of each job")
        parser.add_argument("--why", nargs=2, metavar=("NAME", "AT"), help='why a job ran or not at AT, e.g. "02:00"')
        parser.add_argument(
            "--status", action="store_true", help="which processes run the scheduler, and how it stands"
        )

    def run(self, **options: Any) -> None:
        now, count = shared_now(Engine().using), options["next"]
        if count is not None and not 1 <= count <= MOST_SLOTS:
            raise InvalidOption(f"--next is {count}; it must be from 1 to {MOST_SLOTS}.")
        if options["status"]:
            self._status(get_scheduler_status(), options["json"])
            return
        if options["why"]:
            name, at = options["why"]
            self._why(name, at, now, options["json"])
            return
        paused = paused_groups()
        found = [get_job(options["name"])] if options["name"] else list_jobs()
        jobs = [(job, held_by(job, paused)) for job in found]
        if count is not None:
            self._next([job for job, held in jobs if not held], count, now, options["json"])
        elif options["json"]:
            waiting = waiting_users(found)
            self.print_json([_data(job, held) | _users(job, waiting) for job, held in jobs])
        else:
            self._jobs(jobs, now)

    def _jobs(self, jobs: list[tuple[Job, Group | None]], now: datetime) -> None:
        waiting = waiting_users([job for job, _ in jobs])
        rows = [
            (
                job.name,
                state_of(job, held).label,
                job.schedule,
                moment(_next_start(job, held)),
                _who_waits(job, waiting) or relative(_next_start(job, held), now),
                f"{job.last_status} {relative(job.last_finished_at, now)}" if job.last_status else "never ran",
                pause_words(held) if held else job.problem,
            )
            for job, held in jobs
        ]
        heads = ["JOB", "STATE", "SCHEDULE", "NEXT RUN", "", "LAST RUN", "PROBLEM"]
        self.print_table(heads, rows, empty="No jobs yet: they appear when the scheduler has started once.")

    def _next(self, jobs: list[Job], count: int, now: datetime, as_json: bool) -> None:
        slots = sorted((slot, job.name, note) for job in jobs for slot, note in _upcoming(job, count, now))
        if as_json:
            self.print_json(
                [{"job": name, "scheduled_for": slot.isoformat(), "note": note} for slot, name, note in slots]
            )
            return
        rows = [(moment(slot), relative(slot, now), name, note) for slot, name, note in slots]
        self.print_table(["SLOT", "", "JOB", "NOTE"], rows, empty="No job has a slot to come.")

    def _why(self, name: str, at: str, now: datetime, as_json: bool) -> None:
        answer = explain_slot(name, parse_moment(at, now), now=now)
        if as_json:
            self.print_json(answer.to_dict())
        else:
            self.stdout.write(answer.sentence)

    def _status(self, status: SchedulerStatus, as_json: bool) -> None:
        if as_json:
            self.print_json(status.to_dict())
            return
        style = self.style.SUCCESS if status.ok else self.style.ERROR
        self.stdout.write(style(f"Scheduler: {status.status}"))
        for problem in status.problems:
            self.stdout.write(f"  - {problem}")
        self.stdout.write(f"This process: {status.here['reason']}")
        rows = [
            (
                one["name"],
                one["started_by"],
                "alive" if one["alive"] else "silent",
                f"{one['heartbeat_age']:.0f} s ago",
                "-" if one["tick_age"] is None else f"{one['tick_age']:.0f} s ago",
            )
            for one in status.instances
        ]
        heads = ["INSTANCE", "STARTED BY", "STATE", "HEARTBEAT", "LAST TICK"]
        self.print_table(heads, rows, empty="No instance runs the scheduler.")
        if status.jobs:
            words = ", ".join(
                f"{status.jobs[word]} {word}" for word in ("total", "running", "broken", "paused", "orphaned")
            )
            self.stdout.write(f"Jobs: {words}")
            for group in paused_groups().values():
                self.stdout.write(pause_words(group))


def _next_start(job: Job, held: Group | None) -> datetime | None:
    """Return when a job starts next, or its next slot while it is busy; None before it has been planned.

    What a pause holds goes on at the end of that, if it has one.
    """
    if held:
        end: datetime | None = held.paused_until
        return end
    return job.next_slot if job.next_start_at in (None, UNPLANNED) else job.next_start_at


def _who_waits(job: Job, waiting: Mapping[str, int | None]) -> str:
    """Return how many users wait for a run; empty for a job that does not follow what they do."""
    if job.name not in waiting:
        return ""
    count = waiting[job.name]
    return "users: not known" if count is None else f"users who wait: {count}"


def _users(job: Job, waiting: Mapping[str, int | None]) -> dict[str, Any]:
    return {"waiting_users": waiting[job.name]} if job.name in waiting else {}


def _upcoming(job: Job, count: int, now: datetime) -> list[tuple[datetime, str]]:
    if job.next_slot is None:
        return []
    try:
        schedule, slots = schedule_of(job), slots_to_come(job, count, now)
    except ConfigurationError:
        return []
    return [(slot, schedule.dst_note(slot) or "") for slot in slots]


def _data(job: Job, held: Group | None) -> dict[str, Any]:
    start = held.paused_until if held else job.next_start_at
    return {
        "name": job.name,
        "task": job.task,
        "state": state_of(job, held).value,
        "paused_by_group": str(held) if held else None,
        "schedule": str(job.schedule),
        "next_run_at": None if held else job.next_slot,
        "next_start_at": None if start == UNPLANNED else start,
        "last_run_at": job.last_run_at,
        "last_status": job.last_status,
        "consecutive_failures": job.consecutive_failures,
        "problem": job.problem,
    }
