"""A board of plain text: how the jobs stand, and buttons that do something to them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from scheduler.engine import control
from scheduler.engine.explain.explain_slot import explain_text
from scheduler.engine.views.job_view import views_of
from scheduler.engine.views.preview import preview_of
from scheduler.models import Job

BUTTONS: dict[str, Callable[..., Any]] = {"pause": control.pause_job, "resume": control.resume_job}


def lines(now: datetime) -> list[str]:
    """Return one line for each job."""
    views = views_of(Job.objects.all(), now).values()
    return [f"{view.name} | {view.state} | {view.reason} | {view.next_start} | {view.attention}" for view in views]


def slots(name: str, now: datetime) -> list[datetime]:
    """Return the next three slots of a job."""
    return [slot.at for slot in preview_of(control.get_job(name).view, now, 3).slots]


def why(name: str, now: datetime) -> str:
    """Say what keeps a job from running now."""
    return explain_text(control.get_job(name), "now", now=now).sentence


def press(button: str, name: str, **words: Any) -> None:
    """Do what a button says; `control` refuses what may not be done, with a code."""
    BUTTONS[button](name, **words)
