"""Columns of a job: which belong together, and what is written into them together."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models.functions import Coalesce

from scheduler.definition import COLUMNS
from scheduler.models.fields import LONG_AGO
from scheduler.models.stored import meant_policy, meant_schedule
from scheduler.policy import Policy
from scheduler.schedules import Schedule

AT_ONCE = LONG_AGO
"""When a job wakes that the dispatcher looks at without waiting: earlier than any clock says, and than other jobs."""

GOES_ON_FROM = ("replan_from", "next_run_at", "paused_until")
WHERE_IT_GOES_ON = Coalesce(*GOES_ON_FROM)
"""Replan from here without dropping a slot; a paused job has no next slot."""


def to_replan(since: Any = None, *, wake_at: datetime | None = AT_ONCE) -> dict[str, Any]:
    """Return the columns of a stale plan, which is made again from `since`, else from the moment of that on.

    MariaDB assigns one by one, so `since` comes first: it may be made of what the plan had.
    """
    return {"replan_from": since, "next_run_at": None, "stale": True, "wake_at": wake_at}


NO_PLAN: dict[str, Any] = {"replan_from": None, "next_run_at": None, "stale": False, "wake_at": None}
"""The columns of a job that has no slot to come, and that the dispatcher need not look at."""

UNABLE = "No process can run it now: "
"""How the problem of a job begins that every live instance fails to read or to claim. It stays due, and may heal."""

REFUSED = "The database does not take what the code says of it: "
CLOSES = "What the code says of it closes a circle: "
"""How the problems begin that keep a job from being planned until it is changed. An orphan has one of its own."""

DEFINITION_COLUMNS = ("name", "task", *COLUMNS, "overridden_fields")
"""What people and code decide; everything else is the scheduler's own."""

OF_POLICY = ("overlap", "executor", "expects")
REPEATED = {"schedule": ("schedule_kind",), "policy": OF_POLICY}
"""Columns of which another one repeats a word, so that conditions need not look into their text."""

PLAN = ("replan_from", "next_run_at", "wake_at", "stale")
"""The columns that a plan is made of."""

PLANNING_COLUMNS = frozenset({"schedule", "policy", "enabled", "task"})
"""A change of one of these makes the plan of a job stale."""


def replanned_from(changed: Collection[str]) -> Coalesce | None:
    """Return from where to replan a job: if it keeps its schedule, no due or missed slot is dropped."""
    return None if {"schedule", "enabled"}.intersection(changed) else WHERE_IT_GOES_ON


def repeated(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns that repeat a word of a schedule or a policy among `columns`.

    What cannot be read here keeps the word that a process wrote that could.
    """
    schedule, policy = meant_schedule(columns.get("schedule")), meant_policy(columns.get("policy"))
    kind = {"schedule_kind": schedule.kind} if isinstance(schedule, Schedule) else {}
    return kind | ({name: str(getattr(policy, name)) for name in OF_POLICY} if isinstance(policy, Policy) else {})
