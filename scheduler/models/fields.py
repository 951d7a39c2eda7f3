"""Columns that hold an instant, and columns that hold a schedule or a policy as JSON text.

A row that cannot be read must not stop others: reading never raises, it gives a value that raises when it is used.
"""

import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

from scheduler.exceptions import ConfigurationError
from scheduler.policy import Policy
from scheduler.policy import codec as policies
from scheduler.schedules import Schedule, parse
from scheduler.schedules.base import as_utc, naive_utc

if TYPE_CHECKING:
    _DateTimeField = models.DateTimeField[Any, Any]
    _TextField = models.TextField[Any, Any]
else:
    _DateTimeField = models.DateTimeField
    _TextField = models.TextField


class InstantField(_DateTimeField):
    """An instant: aware UTC in code and UTC in the database, whatever USE_TZ and TIME_ZONE say. The one that converts.

    A naive value is read in the time zone of the project.
    """

    description = "An instant"

    def db_type(self, connection: Any) -> str | None:
        return SQLITE_TYPE if connection.vendor == "sqlite" else super().db_type(connection)

    def get_prep_value(self, value: Any) -> Any:
        value = self.to_python(value)
        if value is None:
            return None
        if value.tzinfo is None and settings.USE_TZ:
            value = super().get_prep_value(value)  # as Django does, with its warning
        elif value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(settings.TIME_ZONE))
        return as_utc(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Aware where the type of the column knows time zones, elsewhere naive UTC: no wall clock has two of one."""
        if type(value) is datetime and value.tzinfo is UTC and connection.vendor == "sqlite":  # nearly all there are
            return naive_utc(value).isoformat(" ")
        if not prepared:
            value = self.get_prep_value(value)
        if isinstance(value, datetime) and not connection.features.supports_timezones:
            value = naive_utc(value)
        return super().get_db_prep_value(value, connection, prepared=True)

    def from_db_value(self, value: datetime | None, expression: object, connection: Any) -> datetime | None:
        """Undo what Django makes of the value: naive UTC is taken for a wall clock, an instant is turned into one."""
        if value is None or value.tzinfo is UTC:
            return value
        if not connection.features.supports_timezones:
            return value.replace(tzinfo=UTC)
        if value.tzinfo is None:  # in the zone of the session; `fold` tells the two hours of autumn apart
            value = value.replace(tzinfo=ZoneInfo(connection.timezone_name))
        return value.astimezone(UTC)


@lru_cache(maxsize=4096)
def _read_instant(text: bytes) -> datetime:
    return datetime.fromisoformat(text.decode()).replace(tzinfo=UTC)


SQLITE_TYPE = "instant"
"""SQLite has no type for instants, only a name its driver looks up: ours is read as aware UTC, three times as fast."""

sqlite3.register_converter(SQLITE_TYPE, _read_instant)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the database cannot be understood; `error` says why."""

    text: str
    error: str

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def read_schedule(text: str) -> Schedule | Unreadable:
    """Return the schedule a text means; the same text gives the same object, so that plans are cheap."""
    try:
        return parse(text)
    except (ConfigurationError, ValueError, TypeError, KeyError, OverflowError) as error:
        return Unreadable(text, str(error))


@lru_cache(maxsize=4096)
def write_schedule(schedule: Schedule) -> str:
    """Return the JSON text of a schedule, the same for equal schedules."""
    return json.dumps(schedule.to_dict(), sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4096)
def read_policy(text: str) -> Policy | Unreadable:
    """Return the policy a text means."""
    try:
        return policies.from_json(text)
    except (ConfigurationError, ValueError, TypeError) as error:
        return Unreadable(text, str(error))


class ScheduleField(_TextField):
    """A `Schedule`; assign a schedule, its text form or its JSON form."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any

    description = "A schedule"

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Schedule | Unreadable | None:
        return None if value is None else read_schedule(value)

    def to_python(self, value: Any) -> Any:
        if value is None or isinstance(value, Schedule | Unreadable):
            return value
        try:
            return parse(value)
        except ConfigurationError as error:
            raise ValidationError(str(error), code="invalid_schedule") from error

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, Unreadable):
            return value.text
        return write_schedule(value if isinstance(value, Schedule) else parse(value))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


class PolicyField(_TextField):
    """A `Policy`; assign a policy or a mapping of options."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any

    description = "The policies of a job"

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Policy | Unreadable | None:
        return None if value is None else read_policy(value)

    def to_python(self, value: Any) -> Any:
        if value is None or isinstance(value, Policy | Unreadable):
            return value
        try:
            return policies.from_json(value) if isinstance(value, str) else policies.from_options(value)
        except ConfigurationError as error:
            raise ValidationError(str(error), code="invalid_policy") from error

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, Unreadable):
            return value.text
        return policies.to_json(value if isinstance(value, Policy) else policies.from_options(value))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
