"""Edits: what a person changed in the form of a job, told apart from what others changed while it was open.

The form carries what it has shown. Only what differs from that is the person's; the rest may have been changed
since by a deploy or another user, and stays as it is now.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django.utils.text import Truncator
from django.utils.translation import gettext as _

from scheduler.admin.jobs.policy_fields import PREFIX, YES_OR_NO, initial_of_policy
from scheduler.admin.jobs.policy_text import text_of
from scheduler.admin.times import DASH
from scheduler.definition import COLUMNS
from scheduler.models import Job
from scheduler.models.fields import ScheduleField
from scheduler.models.stored import Unreadable, read_schedule
from scheduler.policy import Policy

TOLD = ("name", "task", *COLUMNS)
"""The columns of which a form tells."""
LONGEST = 200
"""Characters of a value in a message."""

Told = dict[str, Any]
"""A job as its form tells it: JSON-ready, the schedule in one, each option of the policy by itself."""


def told(columns: Mapping[str, Any]) -> Told:
    """Return some columns of a job as the form tells them."""
    found: Told = {}
    for name, value in columns.items():
        if name == "policy":
            found |= _options(value)
        elif name == "schedule":
            found[name] = ScheduleField().get_prep_value(value)
        elif name == "kwargs":
            found[name] = json.dumps(value, sort_keys=True)
        else:
            found[name] = _as_sent(value)
    return found


def told_of(job: Job) -> Told:
    """Return a whole job as the form tells it."""
    return told({name: getattr(job, name) for name in TOLD})


def read_told(text: str) -> Told | None:
    """Return what a form says it has shown; None when it does not say, or nothing that we wrote."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(found, dict) and all(value is None or isinstance(value, str | int) for value in found.values())
    return found if plain else None


@dataclass(frozen=True, slots=True)
class Edit:
    """Three versions of a job: as the form showed it, as the person wants it, as it is stored now."""

    shown: Told
    wanted: Told
    stored: Told

    @property
    def changed(self) -> set[str]:
        """What the person changed and is not so already."""
        return {
            name
            for name, value in self.wanted.items()
            if value != self.shown.get(name) and value != self.stored.get(name)
        }

    @property
    def conflicts(self) -> set[str]:
        """What was also changed by others, to something else."""
        return {name for name in self.changed if self.shown.get(name) != self.stored.get(name)}

    def columns(self, wanted: Mapping[str, Any], stored: Job) -> dict[str, Any]:
        """Return the columns to write. Raises InvalidOption when options of both make no policy together."""
        changed = self.changed
        found = {name: wanted[name] for name in TOLD if name in changed}
        options = {name.removeprefix(PREFIX) for name in changed if name.startswith(PREFIX)}
        if options:
            found["policy"] = _with_options(stored.policy, wanted["policy"], options)
        return found

    def words(self, name: str) -> str:
        """Return what to tell about a conflict."""
        words = _("It was “{before}” when this form was opened, and is “{now}” now, by a deploy or by another user. "
                  "Save again to make it “{yours}”.")  # fmt: skip
        before, now, yours = (_said(name, one.get(name)) for one in (self.shown, self.stored, self.wanted))
        return words.format(before=before, now=now, yours=yours)

    def shown_with(self, names: Iterable[str]) -> Told:
        """Return what the form has shown once it has told how these are now: to save again is to know of them."""
        return self.shown | {name: self.stored.get(name) for name in names}


def _options(policy: Policy | Unreadable) -> Told:
    if isinstance(policy, Unreadable):
        return dict(initial_of_policy(policy))
    return {PREFIX + field.name: text_of(getattr(policy, field.name)) for field in fields(policy)}


def _with_options(stored: Policy | Unreadable, wanted: Policy, names: set[str]) -> Policy:
    """Return the stored policy with some options as wanted; what cannot be read is replaced."""
    if isinstance(stored, Unreadable):
        return wanted
    return replace(stored, **{name: getattr(wanted, name) for name in names})


def _as_sent(value: Any) -> Any:
    """Return a value as a browser and Django send it back untouched: a text in one line, without blank ends."""
    return value.replace("\r", "").replace("\n", "").strip() if isinstance(value, str) else value


def _said(name: str, value: Any) -> str:
    if name == "schedule" and isinstance(value, str):
        value = str(read_schedule(value))
    if isinstance(value, bool):
        return str(YES_OR_NO[str(value)])
    return DASH if value in (None, "") else Truncator(value).chars(LONGEST)
