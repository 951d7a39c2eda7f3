"""Columns that hold an instant, and columns that hold a schedule or a policy as JSON text.

A row that cannot be read must not stop others: reading never raises, it gives a value that raises when it is used.
"""

import sqlite3
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.fields.json import KeyTransform

from scheduler.exceptions import ConfigurationError
from scheduler.models.distrust import NO_INSTANT, decoded, met
from scheduler.models.stored import Unreadable, meant_policy, meant_schedule, read_policy, read_schedule, write_schedule
from scheduler.policy import Policy
from scheduler.policy import codec as policies
from scheduler.schedules import Schedule
from scheduler.schedules.base import as_utc, naive_utc

if TYPE_CHECKING:
    _DateTimeField = models.DateTimeField[Any, Any]
    _TextField = models.TextField[Any, Any]
    _JSONField = models.JSONField[Any, Any]
    _UUIDField = models.UUIDField[Any, Any]
    _AnyField = models.Field[Any, Any]
else:
    _DateTimeField = models.DateTimeField
    _TextField = models.TextField
    _JSONField = models.JSONField
    _UUIDField = models.UUIDField
    _AnyField = object

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""What an instant reads as that cannot be read, where there must be one."""


class InstantField(_DateTimeField):
    """An instant: aware UTC in code and UTC in the database, whatever USE_TZ and TIME_ZONE say. The one that converts.

    A naive value is read in the time zone of the project. What SQLite holds that is no instant reads as None, and as
    `LONG_AGO` where the column takes no null, or where one `stands` for a state (paused, due) that must not get lost.
    """

    description = "An instant"

    def __init__(self, *args: Any, stands: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stands = stands

    def clone(self) -> Any:
        return type(self)(**super().deconstruct()[3], stands=self.stands)

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
            return (LONG_AGO if self.stands or not self.null else None) if value is NO_INSTANT else value
        if not connection.features.supports_timezones:
            return value.replace(tzinfo=UTC)
        if value.tzinfo is None:  # in the zone of the session; `fold` tells the two hours of autumn apart
            value = value.replace(tzinfo=ZoneInfo(connection.timezone_name))
        return value.astimezone(UTC)


@lru_cache(maxsize=4096)
def _read_instant(text: bytes) -> datetime:
    try:
        return datetime.fromisoformat(text.decode()).replace(tzinfo=UTC)
    except ValueError:
        return NO_INSTANT


SQLITE_TYPE = "instant"
"""SQLite has no type for instants, only a name its driver looks up: ours is read as aware UTC, three times as fast."""

sqlite3.register_converter(SQLITE_TYPE, _read_instant)


class Distrusted(_AnyField):
    """A column in which SQLite keeps values of another type, too. To migrations it is Django's field."""

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        kind = next(one.__name__ for one in type(self).__mro__ if one.__module__.startswith("django."))
        return name, f"django.db.models.{kind}", args, options

    def get_db_converters(self, connection: Any) -> Any:
        given = super().get_db_converters(connection)
        return [*given, self._read] if connection.vendor == "sqlite" else given

    def _read(self, value: Any, expression: object, connection: object) -> Any:
        raise NotImplementedError


class Number(Distrusted):
    """A number. What is none reads as the default."""

    def _read(self, value: Any, expression: object, connection: object) -> Any:
        if type(value) is int:
            return value
        return None if value is None and self.null else self.get_default() or 0


class Flag(Distrusted):
    """Yes or no. What is neither reads as the default."""

    def _read(self, value: Any, expression: object, connection: Any) -> Any:
        if type(value) is bool:
            return value
        met.add(connection.alias)
        return self.get_default()


class Text(Distrusted):
    """A text. Bytes read as the text that they are in UTF-8."""

    def _read(self, value: Any, expression: object, connection: Any) -> Any:
        if type(value) is not bytes:
            return value
        met.add(connection.alias)
        return decoded(value)


class IdentityField(_UUIDField):
    """A UUID. SQLite takes any text: what is none reads as null, and as `NIL_UUID` where the column takes no null.

    To migrations it is Django's field. For its backends it has a type of its own: their readers of UUIDs raise.
    """

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.UUIDField", args, options

    def clone(self) -> Any:
        return type(self)(**super().deconstruct()[3])

    def get_internal_type(self) -> str:
        return "IdentityField"

    def db_type(self, connection: Any) -> str | None:
        return str(connection.data_types["UUIDField"])

    def from_db_value(self, value: Any, expression: object, connection: object) -> UUID | None:
        if value is None or isinstance(value, UUID):
            return value
        try:
            return UUID(value)
        except (ValueError, TypeError, AttributeError):
            return None if self.null else NIL_UUID


NIL_UUID = UUID(int=0)

if TYPE_CHECKING:
    SmallField, BigField = models.SmallIntegerField, models.BigIntegerField
    SmallCountField, CountField = models.PositiveSmallIntegerField, models.PositiveIntegerField
    BigCountField = models.PositiveBigIntegerField
    FlagField, ShortTextField, LongTextField = models.BooleanField, models.CharField, models.TextField
    KeyField = models.ForeignKey
else:

    class SmallField(Number, models.SmallIntegerField): ...

    class BigField(Number, models.BigIntegerField): ...

    class SmallCountField(Number, models.PositiveSmallIntegerField): ...

    class CountField(Number, models.PositiveIntegerField): ...

    class BigCountField(Number, models.PositiveBigIntegerField): ...

    class FlagField(Flag, models.BooleanField): ...

    class ShortTextField(Text, models.CharField): ...

    class LongTextField(Text, models.TextField): ...

    class KeyField(Distrusted, models.ForeignKey):
        """The key of another row. What is no number reads as that of a row that is not there."""

        def _read(self, value: Any, expression: object, connection: object) -> Any:
            return value if type(value) is int or value is None else 0


class ShapedField(_JSONField):
    """JSON of one shape. What has another one, or is no JSON, reads as empty: one bad value costs no other row.

    Without a `shape` the value is given as it is, and its text where that is no JSON: whatever uses it says what is
    wrong. To migrations it is Django's field, since the column is the same.
    """

    def __init__(self, *args: Any, shape: type | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shape = shape

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.JSONField", args, options

    def clone(self) -> Any:
        return type(self)(**super().deconstruct()[3], shape=self.shape)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        read: Any = {} if value == "{}" else self._read(value, expression, connection)  # most are empty
        if self.shape is None or isinstance(expression, KeyTransform) or (read is None and self.null):
            return read
        if self.shape is list and isinstance(read, list):
            return [one for one in read if isinstance(one, str)]
        if isinstance(read, self.shape):
            return read
        return None if self.null else self.shape()

    def _read(self, value: Any, expression: Any, connection: Any) -> Any:
        try:
            return super().from_db_value(value, expression, connection)
        except (ValueError, TypeError, RecursionError):
            return value


class ScheduleField(_TextField):
    """A `Schedule`; assign a schedule, its text form or its JSON form."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any

    description = "A schedule"

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Schedule | Unreadable | None:
        return None if value is None else read_schedule(decoded(value))

    def to_python(self, value: Any) -> Any:
        try:
            return meant_schedule(value)
        except ConfigurationError as error:
            raise ValidationError(str(error), code="invalid_schedule") from error

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, Unreadable):
            return value.text
        return write_schedule(meant_schedule(value))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


class PolicyField(_TextField):
    """A `Policy`; assign a policy or a mapping of options."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any

    description = "The policies of a job"

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Policy | Unreadable | None:
        return None if value is None else read_policy(decoded(value))

    def to_python(self, value: Any) -> Any:
        try:
            return meant_policy(value)
        except ConfigurationError as error:
            raise ValidationError(str(error), code="invalid_policy") from error

    def get_prep_value(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, Unreadable):
            return value.text
        return policies.to_json(meant_policy(value))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
