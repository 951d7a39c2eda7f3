"""Cron: the expression everybody knows, with daylight saving done as cronie does it."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, ClassVar

from scheduler.schedules.base import NO_TIME, Translate
from scheduler.schedules.cron_fields import FIELDS, HOUR, MACROS, MINUTE, SECOND, checked_text
from scheduler.schedules.cron_pattern import CompiledCron, compile_cron
from scheduler.schedules.duration import parse_duration
from scheduler.schedules.every import JITTER
from scheduler.schedules.fields import Field
from scheduler.schedules.fields import gettext_noop as _
from scheduler.schedules.timeline import FixedTimeline, Timeline, WildcardTimeline
from scheduler.schedules.wall_schedule import ZONE, WallSchedule, checked_zone
from scheduler.schedules.wallclock import zone_of

CLOCK_FIELDS = (SECOND, MINUTE, HOUR)
NAMES = re.compile("|".join((*calendar.day_name, *calendar.month_name[1:])))
"""What cron-descriptor leaves in the language of the process."""
PLAIN = re.compile(r"(?:[\d*/,-]+ ){3}[a-z\d*/,-]+ (?!\d*l)[a-z\d*/,-]+", re.IGNORECASE)
"""Five fields that every cron reads: without `L`, `W`, `#`, `?` and seconds."""


@dataclass(frozen=True, slots=True)
class Cron(WallSchedule):
    """`minute hour day month weekday`, or six fields with seconds first, in the wall time of `timezone`.

    Names in any case, Sunday 0 or 7, lists, ranges, steps, `L`, `5L`, `15W`, `2#1`, `?`, `@daily` and its kin. When
    both day fields are restricted either one suffices, unless one starts with `*`: then both must match (cronie).
    Daylight saving: fixed times (no `*` first in second, minute and hour) run once a day, wildcards in real time.

    InvalidSchedule names the field and what to write; an expression that can never fire is refused here.
    """

    kind: ClassVar[str] = "cron"
    label: ClassVar[str] = _("cron")
    line: ClassVar[str] = r"(?:cron )?(?P<expression>(?s:.+))"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("expression", _("Cron expression"),
              _("Minute, hour, day, month, weekday, such as 0 9 * * 1-5; six fields begin with seconds."),
              missing=_("Write a cron expression such as 0 9 * * 1-5.")),
        ZONE,
        JITTER,
    )  # fmt: skip

    expression: str
    timezone: str | None = None
    jitter: timedelta = NO_TIME

    def __post_init__(self) -> None:
        compile_cron(checked_text(self.expression))
        object.__setattr__(self, "expression", " ".join(self.expression.split()))
        object.__setattr__(self, "timezone", checked_zone(self.timezone))
        object.__setattr__(self, "jitter", parse_duration(self.jitter, field="jitter"))

    @property
    def is_fixed_time(self) -> bool:
        """False when the hour field begins with `*`: with `*/30 9 * * *`, 9:30 of a day is one slot in any zone."""
        return not compile_cron(self.expression).parts[2].starred

    def _timeline(self) -> Timeline:
        return _timeline(self.expression, self._zone_name)

    def notes(self, translate: Translate = str) -> tuple[str, ...]:
        """Steps that do not fit their field, and how two restricted day fields combine."""
        compiled = compile_cron(self.expression)
        return (*_step_notes(compiled, translate), *_day_notes(compiled, translate))

    def _words(self, _: Translate) -> str:
        return self._in_zone(_described(self.expression, _), _)

    def to_text(self) -> str:
        """`cron 0 9 * * 1-5 @ Europe/Berlin`."""
        return f"cron {self.expression}{self._suffix()}"

    @property
    def crontab(self) -> str | None:
        expression = MACROS.get(self.expression.lower(), self.expression)
        return expression if PLAIN.fullmatch(expression) else None


@lru_cache(maxsize=4096)
def _timeline(expression: str, timezone: str) -> Timeline:
    compiled = compile_cron(expression)
    kind = FixedTimeline if compiled.fixed else WildcardTimeline
    return kind(compiled.pattern, zone_of(timezone))


def _step_notes(compiled: CompiledCron, _: Translate) -> Iterator[str]:
    for field, part in zip(FIELDS, compiled.parts, strict=True):
        for piece, value in part.wide_steps:
            phrase = _('{field}: the step of "{piece}" has room for one value, so only {value} matches')
            yield phrase.format(field=field.label, piece=piece, value=value)
        step = re.fullmatch(r"\*/(\d+)", part.text)
        if step and field in CLOCK_FIELDS and not part.wide_steps and (field.high + 1) % int(step[1]):
            phrase = _('{field}: {span} is no multiple of the step of "{piece}", so its steps start again early')
            yield phrase.format(field=field.label, span=field.high + 1, piece=part.text)


def _day_notes(compiled: CompiledCron, _: Translate) -> list[str]:
    if compiled.either_day:
        return [_("day of month and day of week are both set: a day that matches either one counts")]
    if _both_days(compiled):
        return [_("day of month and day of week are both set and one starts with *: a day must match both")]
    return []


def _described(expression: str, _: Translate) -> str:
    """cron-descriptor's words when it is installed and reads the expression as we do, else the expression itself."""
    plain = _("by cron expression {expression}").format(expression=expression)
    if _is_misread(compile_cron(expression)):
        return plain
    # Translators: the language of cron-descriptor that is yours, such as de_DE.
    words = _words_of_descriptor(MACROS.get(expression.lower(), expression), _("en_US"))
    return plain if words is None else NAMES.sub(lambda name: _(name[0]), words)


@lru_cache(maxsize=4096)
def _words_of_descriptor(expression: str, language: str) -> str | None:
    """Return None where it has none. It reads a file of its catalogue each time, and lists ask for the same again."""
    try:
        from cron_descriptor import get_description

        words: str = get_description(expression, _options(language))
    except Exception:  # it is absent, or knows fewer expressions than cron does and says so by errors of every kind
        return None
    return words


def _options(language: str) -> Any:
    from cron_descriptor import Options

    try:
        return Options(use_24hour_time_format=True, locale_code=language)
    except TypeError:  # release 1, which django-celery-beat asks for, takes no arguments
        options: Any = Options()
        options.use_24hour_time_format, options.locale_code = True, language
        return options


def _is_misread(compiled: CompiledCron) -> bool:
    """cron-descriptor says "every 90 minutes", "or" where cron means "and", "last" or "at *" of a whole list."""
    return _both_days(compiled) or any(part.wide_steps or part.mixed for part in compiled.parts)


def _both_days(compiled: CompiledCron) -> bool:
    day, weekday = compiled.parts[3], compiled.parts[5]
    return not compiled.either_day and day.restricted and weekday.restricted
