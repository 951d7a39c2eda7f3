"""Pages: lists of jobs, runs and events a page at a time, each beginning behind the last row of the one before.

A cursor holds the whole order of that row, its id included, so that rows with equal instants are neither lost nor told
twice, and a page costs the same wherever it is.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import F, Q, QuerySet

from scheduler.arguments import checked_flag, checked_text, checked_whole
from scheduler.engine.base import Engine
from scheduler.engine.control.history import events_by_name
from scheduler.engine.db.shared_time import shared_now
from scheduler.engine.views.conditions import AT_REST, IN_STATE, PERHAPS_FINISHED
from scheduler.engine.views.job_view import JobView, state_of, views_of
from scheduler.engine.views.pauses import HELD
from scheduler.engine.views.stats import chosen_runs
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, JobEvent, JobState, RunLog, in_groups
from scheduler.models.carriers import CARRIERS
from scheduler.safetext import shown

T = TypeVar("T")

MOST_ON_PAGE = 200
LONGEST_TEXT = 255
LONGEST_CURSOR = 2000
LARGEST_ID = 2**63 - 1
NEWEST, OLDEST = "-id", "id"
JOB_ORDERS = ("name", "-name", "next_run", "-next_run")
"""By name, or by the planned slot, jobs without one at the end; with `-`, the other way round."""
RUN_ORDERS = (NEWEST, OLDEST)
NARROWED = IN_STATE | {JobState.SCHEDULED: AT_REST, JobState.FINISHED: PERHAPS_FINISHED}
del NARROWED[JobState.INVALID]
"""What a query knows of each state; one that cannot be read here is found row by row."""
FIRST_LOOK, WIDENED = 500, 10
"""Rows of the first query where rows are asked, and how many times as many each further one has."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and the cursor of the page behind them; empty where this is the last one."""

    items: list[T]
    cursor: str = ""


def jobs_page(
    *,
    state: str | None = None,
    task: str | None = None,
    group: str | None = None,
    enabled: bool | None = None,
    text: str = "",
    order: str = "name",
    cursor: str = "",
    limit: int = 50,
    among: QuerySet[Job] | None = None,
) -> Page[JobView]:
    """Return how the jobs stand that all given filters let through, in a constant number of queries.

    `text` is a part of the name, the task or the description, in any case; the other filters are those of `list_jobs`.
    Of a query of jobs, `among` lets its own through only. Raises InvalidOption that names the filter.
    """
    most = _checked_limit(limit)
    _checked_choice("order", order, JOB_ORDERS)
    if state is not None:
        _checked_choice("state", state, JobState.values)
    jobs = _filtered(state, task, group, enabled, text)
    if among is not None:
        jobs = jobs.filter(pk__in=among.values("pk"))
    found = _some_jobs(jobs, state, order, _after(cursor, order), most + 1)
    views = views_of(found[:most], shared_now(Engine().using))
    end = _cursor(order, _place(order, found[most - 1])) if len(found) > most else ""
    return Page([views[job.name] for job in found[:most]], end)


def runs_page(
    job: Job | None = None,
    /,
    *,
    order: str = NEWEST,
    cursor: str = "",
    limit: int = 50,
    among: QuerySet[Job] | None = None,
    **filters: Any,
) -> Page[RunLog]:
    """Return runs of one job, or of all, or of those `among`; the filters are those of `get_runs`, and `actor`."""
    most = _checked_limit(limit)
    _checked_choice("order", order, RUN_ORDERS)
    runs = chosen_runs(job, **filters).select_related("job").defer("log")
    return _by_id(runs if among is None else runs.filter(job__in=among.values("pk")), order, cursor, most)


def events_page(name: str, *, cursor: str = "", limit: int = 50) -> Page[JobEvent]:
    """Return what happened to a job besides runs, the newest first; see `get_job_events`."""
    return _by_id(events_by_name(name), NEWEST, cursor, _checked_limit(limit))


def _by_id(rows: QuerySet[Any], order: str, cursor: str, most: int) -> Page[Any]:
    if after := _after(cursor, order):
        rows = rows.filter(**{"pk__lt" if order == NEWEST else "pk__gt": after[0]})
    found = list(rows.order_by(order)[: most + 1])
    return Page(found[:most], _cursor(order, [found[most - 1].pk]) if len(found) > most else "")


def _filtered(state: str | None, task: str | None, group: str | None, enabled: bool | None, text: str) -> QuerySet[Any]:
    jobs: Any = Job.objects.using(Engine().using).filter(~CARRIERS).annotate(is_held=HELD)
    wanted: dict[str, Any] = {} if task is None else {"task": checked_text("task", task)}
    if group is not None:
        jobs = jobs.filter(in_groups([checked_text("group", group)]))
    if enabled is not None:
        wanted["enabled"] = checked_flag("enabled", enabled)
    if part := checked_text("text", text, longest=LONGEST_TEXT):
        jobs = jobs.filter(Q(name__icontains=part) | Q(task__icontains=part) | Q(description__icontains=part))
    if state not in (None, JobState.RUNNING):
        jobs = jobs.filter(active_runs=0)
    if state in NARROWED:
        jobs = jobs.filter(NARROWED[JobState(state)])
    found: QuerySet[Any] = jobs.filter(**wanted)
    return found


def _some_jobs(jobs: Any, state: str | None, order: str, after: list[Any], most: int) -> list[Job]:
    """Return the next jobs. What no condition tells of a state is asked of each row: where the condition fits, this is
    one query, and in the worst case each further one is ten times as wide."""
    found: list[Job] = []
    look = most if state is None else max(most, FIRST_LOOK)
    while True:
        rows = list(_behind(jobs, order, after).order_by(*_columns(order))[:look])
        found += [job for job in rows if state is None or state_of(job, job.is_held) == state]
        if len(found) >= most or len(rows) < look:
            return found[:most]
        after, look = _place(order, rows[-1]), look * WIDENED


def _columns(order: str) -> list[Any]:
    if order.endswith("name"):
        return [order]
    slot = F("next_run_at")
    return [slot.desc(nulls_first=True), "-pk"] if order.startswith("-") else [slot.asc(nulls_last=True), "pk"]


def _place(order: str, job: Job) -> list[Any]:
    if order.endswith("name"):
        return [job.name]
    slot: datetime | None = job.next_run_at
    return [slot.isoformat() if slot else None, job.pk]


def _behind(jobs: QuerySet[Any], order: str, after: list[Any]) -> QuerySet[Any]:
    """Return the jobs behind a place; those without a slot come last, or first the other way round."""
    if not after:
        return jobs
    step = "lt" if order.startswith("-") else "gt"
    if order.endswith("name"):
        return jobs.filter(**{f"name__{step}": after[0]})
    slot, pk = after
    same = Q(next_run_at=slot, **{f"pk__{step}": pk}) if slot else Q(next_run_at=None, **{f"pk__{step}": pk})
    if slot is None:
        return jobs.filter(same | Q(next_run_at__isnull=False)) if step == "lt" else jobs.filter(same)
    further = Q(**{f"next_run_at__{step}": slot})
    return jobs.filter(same | further | Q(next_run_at=None)) if step == "gt" else jobs.filter(same | further)


def _cursor(order: str, place: Sequence[Any]) -> str:
    text = json.dumps([order, *place], separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(cursor: str, order: str) -> list[Any]:
    """Return the place that a cursor of this order holds, empty for the first page; it may come from anywhere."""
    if not cursor:
        return []
    wrong = InvalidOption(f"cursor is {shown(cursor)}; pass what the page before gave, with the same order.")
    if len(cursor) > LONGEST_CURSOR or not cursor.isascii():
        raise wrong
    try:
        found = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise wrong from None
    if not (isinstance(found, list) and found[:1] == [order] and _is_place(order, found[1:])):
        raise wrong
    place: list[Any] = found[1:]
    return [datetime.fromisoformat(place[0]) if place[0] else None, place[1]] if len(place) == 2 else place


def _is_place(order: str, place: list[Any]) -> bool:
    if order.endswith("name"):
        return len(place) == 1 and isinstance(place[0], str) and bool(checked_text("cursor", place[0]))
    if not place or not (type(place[-1]) is int and 0 <= place[-1] <= LARGEST_ID):
        return False
    return len(place) == 1 if order in RUN_ORDERS else len(place) == 2 and _is_instant(place[0])


def _is_instant(text: Any) -> bool:
    if text is None:
        return True
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _checked_limit(limit: int) -> int:
    return checked_whole("limit", limit, least=1, most=MOST_ON_PAGE)


def _checked_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidOption(f"{name} is {shown(value)}; it must be one of {', '.join(known)}.")
