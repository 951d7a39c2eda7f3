"""Show when jobs run next and how they stand."""

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from operator import attrgetter
from typing import Any

from scheduler.engine.base import Engine
from scheduler.engine.control import get_job, get_job_events, job_once_named, list_jobs
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.explain.explain_slot import explain_text
from scheduler.engine.views.history import in_words
from scheduler.engine.views.job_view import JobView, views_of
from scheduler.engine.views.pauses import Hold, paused_groups
from scheduler.engine.views.preview import Preview, preview, preview_of
from scheduler.engine.views.upcoming import jobs_of_code
from scheduler.exceptions import InvalidOption, UnknownJob
from scheduler.health import SchedulerStatus, get_scheduler_status
from scheduler.management.output import SchedulerCommand, moment, relative
from scheduler.models import Job, JobEvent, TakenGroups
from scheduler.safetext import counted, shown, visible
from scheduler.schedules import parse
from scheduler.schedules.duration import length_words
from scheduler.schedules.wallclock import zone_of

MOST_SLOTS, PREVIEWED = 1000, 5
"""Of each job, in one answer."""
SOME_EVENTS = 20


class Command(SchedulerCommand):
    """Prints the jobs, their next slots, or the state of the scheduler."""

    help = "Show the schedule: all jobs, the next slots of each, or the state of the scheduler."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", nargs="?", help="only this job")
        parser.add_argument("--next", type=int, metavar="N", help="the next N slots of each job")
        parser.add_argument(
            "--preview", metavar="SCHEDULE", help='what a schedule means and its next slots, e.g. "cron 0 9 * * 1-5"'
        )
        parser.add_argument(
            "--why",
            nargs="+",
            metavar=("NAME", "AT"),
            help='why a job ran or not at AT, e.g. "02:00" (a time of its zone); without AT, what keeps it now',
        )
        parser.add_argument("--history", metavar="NAME", help="what happened to a job besides runs, the newest first")
        parser.add_argument(
            "--limit", type=int, metavar="N", default=SOME_EVENTS, help="with --history, so many (default 20)"
        )
        parser.add_argument(
            "--status", action="store_true", help="which processes run the scheduler, and how it stands"
        )

    def run(self, **options: Any) -> None:
        now, count = shared_now(Engine().using), options["next"]
        if count is not None and not 1 <= count <= MOST_SLOTS:
            raise InvalidOption(f"--next is {count}; it must be from 1 to {MOST_SLOTS}.")
        _refuse_two_questions(options)
        if options["history"] is not None:
            self._history(options["history"], options["limit"], options["json"])
        elif options["status"]:
            self._status(get_scheduler_status(), options["json"])
        elif options["preview"] is not None:
            self._preview(preview(parse(options["preview"]), now, count or PREVIEWED), now, options["json"])
        elif options["why"] is not None:
            name, *words = options["why"]
            self._why(name, " ".join(words), now, options["json"])
        else:
            self._schedule(options["name"], count, now, options["json"])

    def _schedule(self, name: str | None, count: int | None, now: datetime, as_json: bool) -> None:
        views = list(views_of([_named(name)] if name is not None else _all(), now).values())
        if count is None:
            self._jobs(views, now, as_json)
            return
        self._next([view for view in views if view.job.enabled or name], count, now, as_json)

    def _jobs(self, views: list[JobView], now: datetime, as_json: bool) -> None:
        if as_json:
            self.print_json([view.to_dict() for view in views])
            return
        rows = [
            (view.name, view.state.label, view.job.schedule, *_when(view, now), _last(view, now), _problem(view))
            for view in views
        ]
        heads = ["JOB", "STATE", "SCHEDULE", "NEXT RUN", "", "LAST RUN", "PROBLEM"]
        self.print_table(heads, rows, empty="No code registers a task, and there is no job.")

    def _next(self, views: list[JobView], count: int, now: datetime, as_json: bool) -> None:
        found = sorted(slot for view in views for slot in _upcoming(view, count, now))
        if as_json:
            keys = ("scheduled_for", "job", "note", "start_at")
            self.print_json([dict(zip(keys, one, strict=True)) for one in found])
            return
        rows = [(moment(at), relative(at, now), name, note) for at, name, note, _start in found]
        self.print_table(["SLOT", "", "JOB", "NOTE"], rows, empty="No job has a slot to come.")

    def _preview(self, told: Preview, now: datetime, as_json: bool) -> None:
        if as_json:
            self.print_json(asdict(told) | {"slots": [{"at": slot.at, "note": slot.note} for slot in told.slots]})
            return
        self.stdout.write(f"{told.words} ({told.text}){f', times in {told.timezone}' if told.zone else ''}")
        zone = zone_of(told.timezone)  # what the schedule says is a time there
        rows = [(moment(slot.at, zone), relative(slot.at, now), slot.note) for slot in told.slots]
        self.print_table(["SLOT", "", "NOTE"], rows, empty="No start is planned by time.")
        for note in told.notes:
            self.stdout.write(note)

    def _why(self, name: str, at: str, now: datetime, as_json: bool) -> None:
        answer = explain_text(job_once_named(name), at, now=now)
        if as_json:
            self.print_json(answer.to_dict())
        else:
            self.stdout.write(visible(answer.sentence))

    def _history(self, name: str, limit: int, as_json: bool) -> None:
        events = get_job_events(name, limit=limit)
        if as_json:
            self.print_json([_event_data(event) for event in events])
            return
        rows = []
        for event in events:
            words = in_words(event)
            what = f"{words.of}: {words.what}" if words.of else words.what
            rows.append((moment(event.at), what, words.by, words.details))
        self.print_table(["WHEN", "WHAT", "BY", "DETAILS"], rows, empty="Nothing is recorded of it besides runs.")

    def _status(self, status: SchedulerStatus, as_json: bool) -> None:
        if as_json:
            self.print_json(status.to_dict())
            return
        style = self.style.SUCCESS if status.ok else self.style.ERROR
        self.stdout.write(f"Scheduler: {status.status}", style)
        for problem in status.problems:
            self.stdout.write(f"  - {problem.severity}: {problem}")
        self.stdout.write(visible(f"This process: {status.here['reason']}"))
        rows = [
            (
                one["name"],
                one["started_by"],
                str(TakenGroups.told_by(one["groups"])),
                "alive" if one["alive"] else "silent",
                f"{length_words(one['heartbeat_age'], parts=1)} ago",
                "-" if one["tick_age"] is None else f"{length_words(one['tick_age'], parts=1)} ago",
            )
            for one in status.instances
        ]
        heads = ["INSTANCE", "STARTED BY", "GROUPS", "STATE", "HEARTBEAT", "LAST TICK"]
        self.print_table(heads, rows, empty="No instance runs the scheduler.")
        if status.jobs:
            words = ", ".join(
                f"{status.jobs[word]} {word}" for word in ("total", "running", "broken", "paused", "orphaned")
            )
            self.stdout.write(f"Jobs: {words}")
            for group in paused_groups().values():
                self.stdout.write(visible(str(Hold.of(group))))


def _refuse_two_questions(options: dict[str, Any]) -> None:
    """Raise InvalidOption where more is asked than one answer tells. `--preview` takes `--next` as its number."""
    asked = [f"--{name}" for name in ("history", "why", "status", "preview") if options[name] not in (None, False)]
    if options["next"] is not None and asked != ["--preview"]:
        asked.append("--next")
    if options["name"] is not None and asked not in ([], ["--next"]):
        asked.append(f"the job {shown(options['name'])}")
    if len(asked) > 1:
        raise InvalidOption(f"{' and '.join(asked)} cannot be asked at once; ask for one of them.")


def _all() -> list[Job]:
    """Return every job, and those to come: of tasks that are registered and whose job nothing has made yet."""
    jobs = list_jobs()
    names = {job.name for job in jobs}
    return sorted([*jobs, *(job for job in jobs_of_code() if job.name not in names)], key=attrgetter("name"))


def _named(name: str) -> Job:
    """Return the job of this name, or as it will be where its code is registered and nothing has made it yet."""
    try:
        return get_job(name)
    except UnknownJob:
        to_come = [job for job in jobs_of_code() if job.name == name]
        if not to_come:
            raise
        return to_come[0]


def _upcoming(view: JobView, count: int, now: datetime) -> list[tuple[datetime, str, str, datetime]]:
    """Return the slots of a job that is planned, or would be, and that no pause holds, with their notes and starts."""
    if view.held_by or not (view.next_slot or view.would_run_at):
        return []
    off = "" if view.job.enabled else "disabled: if it were enabled"
    slots = preview_of(view, now, count).slots
    return [(slot.at, view.name, "; ".join(filter(None, (off, slot.note))), slot.start or slot.at) for slot in slots]


def _when(view: JobView, now: datetime) -> tuple[str, str]:
    """Return the next start of a job, and how far off that is; in parentheses that of one that is not enabled."""
    if view.would_run_at and not view.job.enabled:
        return f"({moment(view.would_run_at)})", "if it were enabled"
    if view.waiting.has_users:
        count = view.waiting.users
        return moment(view.next_start), "users: not known" if count is None else f"users who wait: {count}"
    return moment(view.next_start), "after this run" if view.after_run else relative(view.next_start, now)


def _last(view: JobView, now: datetime) -> str:
    """Return how the last run ended, and when: one with errors is no plain success."""
    last = view.last
    if last is None:
        return "never ran"
    errors = f" with {counted(last.errors, 'error')}" if last.errors else ""
    return f"{last.status}{errors} {relative(last.finished_at, now)}"


def _problem(view: JobView) -> str:
    """Return what keeps the job, and what the code says otherwise than a person whose change holds."""
    told = [view.attention if view.attention not in ("", view.state.value) else "", view.reason]
    if view.job.pk is None:
        told.append("not made yet: `migrate`, or a server that starts, makes it of the code")
    if names := view.hidden_from_code:
        told.append(f"changed by people, the code says otherwise: {', '.join(names)}")
    return "; ".join(filter(None, told))


def _event_data(event: JobEvent) -> dict[str, Any]:
    names = ("at", "kind", "name", "actor", "reason", "data")
    return {"of": "job" if event.job_id else "group", **{name: getattr(event, name) for name in names}}
