"""What pages rest on: the time that they show, the right to read runs, and what each hands to its template."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest

from scheduler.engine.base import Engine
from scheduler.engine.dbtime import shared_now


def page_context(admin: Any, request: HttpRequest, title: str, **more: Any) -> dict[str, Any]:
    """Return the context of the admin site with title, media and model; `admin:` in templates means this site."""
    request.current_app = admin.admin_site.name
    return {
        **admin.admin_site.each_context(request),
        "title": title,
        "opts": admin.model._meta,
        "media": admin.media,
        **more,
    }


def now_of(request: HttpRequest) -> datetime:
    """Return the time by the clock that all instances go by, asked for once in a request."""
    known: datetime | None = getattr(request, "scheduler_now", None)
    if known is None:
        known = request.scheduler_now = shared_now(Engine().using)  # type: ignore[attr-defined]
    return known


def may_read_runs(request: HttpRequest) -> bool:
    """Return whether the user may see what ran: when, and with which errors, logs and results."""
    return request.user.has_perm("scheduler.view_runlog")
