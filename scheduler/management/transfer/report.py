"""Report: what an import did, or would do, for people and for programs."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from scheduler.management.output import moment
from scheduler.management.transfer.entry import Imported, Outcome
from scheduler.management.transfer.writer import carried, counted
from scheduler.safetext import counted as number_of

WORDS = {
    Outcome.CREATED: "created",
    Outcome.REPLACED: "replaced",
    Outcome.UNCHANGED: "unchanged",
    Outcome.KEPT: "kept as here",
    Outcome.OVER: "left out",
    Outcome.REFUSED: "refused",
}


def as_data(results: Sequence[Imported], notes: Sequence[str], *, source: str, applied: bool) -> dict[str, Any]:
    """Return the report as JSON-ready data."""
    return {
        "source": source,
        "applied": applied,
        "total": len(results),
        "carried": len(list(carried(results))),
        "outcomes": counted(results),
        "notes": list(notes),
        "schedules": [one.to_dict() for one in results],
    }


def as_lines(results: Sequence[Imported], notes: Sequence[str], *, applied: bool) -> Iterator[str]:
    """Yield the report line by line: each schedule, what is to be known of it, and the sum."""
    width = max((len(WORDS[one.outcome]) for one in results), default=0)
    for one in results:
        yield f"{WORDS[one.outcome]:{width}}  {_told(one)}"
        for detail in _details(one):
            yield f"{'':{width}}    {detail}"
    yield from notes
    yield _sum(results, applied=applied)


def _told(one: Imported) -> str:
    entry = one.entry
    name = f"{entry.name} ({entry.place})" if entry.name else entry.place
    if one.outcome in (Outcome.REFUSED, Outcome.OVER) or entry.schedule is None:
        return name
    off = "" if entry.said.get("enabled", True) else ", disabled"
    return f"{name}: {entry.schedule.to_text()}{off}{_next(one.next_slot)}"


def _next(at: datetime | None) -> str:
    return f", next {moment(at)}" if at else ""


def _details(one: Imported) -> Iterator[str]:
    if one.reason:
        yield one.reason
    if one.changes and one.outcome is not Outcome.UNCHANGED:
        verb = "changes" if one.outcome is Outcome.REPLACED else "differs here in"
        yield f"{verb} {', '.join(one.changes)}"
    yield from one.notes


def _sum(results: Sequence[Imported], *, applied: bool) -> str:
    found = counted(results)
    parts = ", ".join(f"{found[outcome.value]} {words}" for outcome, words in WORDS.items() if found[outcome.value])
    total, good = number_of(len(results), "schedule"), len(list(carried(results)))
    verb = "are here now" if applied else "would be here"
    line = f"{good} of {total} {verb}{f': {parts}' if parts else ''}."
    more = " Jobs that differ are replaced with --replace." if found[Outcome.KEPT.value] else ""
    return f"{line}{more}" if applied else f"{line}{more} Nothing was written: --apply does."
