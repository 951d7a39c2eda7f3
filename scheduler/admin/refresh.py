"""Live refresh: a cheap stamp of what a page shows, so that a page without news costs two queries and no body."""

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags
from django.utils.translation import get_language

from scheduler.admin.page_context import marks_of, paused_of
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.views.pauses import Hold

HEADER = "X-Scheduler-Live"


def stamp_of_jobs(request: HttpRequest, *more: Any) -> str:
    """Return the stamp of a page about all jobs, and of what `more` it rests on.

    Each change of a job raises its version; each claim makes a row.
    """
    marks = {name: number for name, number in marks_of(request).items() if name != "clock"}
    request.scheduler_has_jobs = bool(marks.get("jobs"))  # type: ignore[attr-defined]
    return stamp(request, sorted(marks.items()), *map(Hold.of, paused_of(request).values()), *more)


def stamp(request: HttpRequest, *parts: Any) -> str:
    """Return the stamp of a page: who asks for what, what it rests on, and the minute, for what only time changes."""
    minute = f"{SYSTEM_CLOCK.now():%Y-%m-%d %H:%M}"
    text = repr((request.get_full_path(), request.user.pk, get_language(), minute, parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'


def not_modified(request: HttpRequest, stamp: str) -> bool:
    """Whether the live refresh already shows this, by RFC 9110, 13.1.2: a page that was compressed on its way has a
    weak tag."""
    known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
    return request.method == "GET" and HEADER in request.headers and stamp in known


def with_stamp(response: HttpResponse, stamp: str) -> HttpResponse:
    """Add the stamp to a response; nothing else may keep a copy of it."""
    response.headers["ETag"] = stamp
    response.headers["Cache-Control"] = "private, no-store"
    return response
