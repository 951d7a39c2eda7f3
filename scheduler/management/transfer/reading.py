"""Reading: the entries of a document that `document.py` describes."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from scheduler.arguments import checked_name, checked_text, did_you_mean
from scheduler.exceptions import InvalidOption, SchedulerError
from scheduler.management.transfer.document import COLUMNS, FORMAT, KEYS, VERSION
from scheduler.management.transfer.entry import Entry, Pause
from scheduler.management.transfer.strict_json import strict_json
from scheduler.safetext import counted, shown, told
from scheduler.schedules import from_dict


def read(text: str) -> tuple[list[Entry], list[str]]:
    """Return the entries of a document, and what is to be known of it as a whole; raises InvalidOption.

    What is wrong with one job is said of its entry.
    """
    document = _document(text)
    zone, jobs = document.get("time_zone"), document.get("jobs")
    if not isinstance(jobs, list):
        raise InvalidOption('The document has no list "jobs".')
    notes = list(_notes(document, zone))
    return [_entry(number, job) for number, job in enumerate(jobs, 1)], notes


def _document(text: str) -> Mapping[str, Any]:
    document = strict_json(text, "The file")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidOption(
            f'The file is no export of this scheduler: it must be a JSON object with "format": "{FORMAT}". '
            "For what another scheduler wrote, say which one with --from."
        )
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InvalidOption(f"The version of the file is {shown(version)}; it must be a whole number from 1.")
    if version > VERSION:
        raise InvalidOption(
            f"The file has version {version} of the format, and this release reads up to {VERSION}: "
            "import it with the release that wrote it, or a later one."
        )
    return document


def _notes(document: Mapping[str, Any], zone: object) -> Iterator[str]:
    if isinstance(zone, str) and zone != settings.TIME_ZONE:
        here = settings.TIME_ZONE
        yield f"Schedules without a zone of their own followed {shown(zone)} there; they follow {here} here."
    paused = document.get("paused_groups")
    for group in paused if isinstance(paused, list) else ():
        if isinstance(group, dict):
            what = f"The group {shown(group['name'])}" if group.get("name") else "Everything"
            why = shown(group.get("reason") or "no reason was given")
            yield f"{what} was paused there: {why}. Importing does not pause it here."


def _entry(number: int, job: Any) -> Entry:
    place = f"job {number}"
    if not isinstance(job, dict):
        return Entry(place=place, refused=f"A job is a JSON object, not {shown(job)}.")
    name = job.get("name")
    text = name if isinstance(name, str) else ""
    try:
        return _read_job(place, job)
    except (SchedulerError, TypeError, ValueError, OverflowError) as error:
        return Entry(place=place, name=text, refused=told(error))


def _read_job(place: str, job: dict[str, Any]) -> Entry:
    _refuse_keys(job)
    options = _options(job.get("options", {}))
    return Entry(
        place=place,
        name=checked_name(job["name"]),
        task=checked_text("task", job["task"]),
        schedule=from_dict(job["schedule"]),
        said={key: job[key] for key in COLUMNS[1:] if key in job} | options,
        whole=True,
        overridden=_overridden(job.get("overridden", [])) if job.get("from_code") is True else None,
        pause=_pause(job.get("paused")),
        beginnings=tuple(_beginnings(job, options)),
    )


def _refuse_keys(job: dict[str, Any]) -> None:
    if unknown := sorted(job.keys() - {*KEYS}):
        raise InvalidOption(f"The key {shown(unknown[0])} is unknown.{did_you_mean(unknown[0], KEYS)}")
    if missing := [key for key in ("name", "task", "schedule") if key not in job]:
        raise InvalidOption(f"The key {missing[0]!r} is missing.")


def _options(options: object) -> dict[str, Any]:
    if not isinstance(options, dict):
        raise InvalidOption(f"options is {shown(options)}; it must be a JSON object.")
    if among := sorted(options.keys() & {*KEYS}):
        raise InvalidOption(f"{among[0]!r} is no option of the policy: write it beside options.")
    return options


def _overridden(names: object) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise InvalidOption(f"overridden is {shown(names)}; it must be a list of names of fields.")
    return frozenset(names)


def _beginnings(job: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
    if job.get("state") == "broken":
        yield "it was broken there, and begins without failures here"
    if options.get("max_runs") is not None:
        yield f"max_runs: {counted(options['max_runs'], 'run')} from now on, whatever it has had there"


def _pause(data: Any) -> Pause | None:
    if data is None:
        return None
    if not isinstance(data, dict):
        raise InvalidOption(f"paused is {shown(data)}; it must be a JSON object or null.")
    until, (by, reason) = data.get("until"), (checked_text(name, data.get(name, "")) for name in ("by", "reason"))
    try:
        at = None if until is None else datetime.fromisoformat(until)
    except (TypeError, ValueError):
        raise InvalidOption(f"paused.until is {shown(until)}; write an instant in ISO 8601.") from None
    if at is not None and at.tzinfo is None:
        raise InvalidOption(f"paused.until is {shown(until)}; write it with its offset from UTC.")
    return Pause(until=at, by=by, reason=reason)
