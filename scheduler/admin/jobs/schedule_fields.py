"""The fields of every kind of schedule in one form, made from what the kinds declare, and the way there and back."""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler.exceptions import InvalidSchedule
from scheduler.models.stored import Unreadable
from scheduler.schedules import Schedule, parse
from scheduler.schedules.fields import Choice, Field, Flag, Several, Whole
from scheduler.schedules.kinds import KINDS

OFF, OTHER = "off", ""
TEXT = "text"
"""The kind of the form that is one line of text."""
CHOICES = [
    *((name, gettext_lazy(kind.label)) for name, kind in KINDS.items()),
    (TEXT, gettext_lazy("one line of text")),
]
WORKDAYS = "workdays"
"""The choice that stands for the first five days of a week."""
NUMBERS = {name: number for number, (name, _label) in enumerate(CHOICES)}
"""Of the kinds: our styles show the fields that bear the number of the one that is chosen."""
PRESETS = [
    *[(f"{hours}h", gettext_lazy("%s h") % hours) for hours in (1, 3, 6, 12, 24)],
    (OTHER, gettext_lazy("other")),
    (OFF, gettext_lazy("off")),
]


@cache
def zone_names() -> tuple[str, ...]:
    """Return the names of all time zones, for the field that completes them. They are read from many files."""
    return tuple(sorted(name for name in available_timezones() if "/" in name or name == "UTC"))


class KindSelect(forms.RadioSelect):
    """The kinds, each with its number."""

    def create_option(self, name: str, value: Any, *args: Any, **options: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **options)
        option["attrs"]["data-kind"] = NUMBERS.get(str(value), "")
        return option


def _declared() -> dict[str, tuple[Field, list[str]]]:
    """Return the fields that kinds declare, by their names in the form, each with the names of these kinds.

    They stand as far back as any kind has them, so that those of each kind are in its order.
    """
    found: dict[str, tuple[Field, list[str]]] = {}
    places: dict[str, int] = {}
    for name, kind in KINDS.items():
        for place, field in enumerate(kind.fields):
            found.setdefault(field.form_name, (field, []))[1].append(name)
            places[field.form_name] = max(place, places.get(field.form_name, 0))
    return {name: found[name] for name in sorted(found, key=places.__getitem__)}


def _form_field(field: Field, kinds: list[str]) -> forms.Field:
    attrs = _of_kinds(*kinds) | ({"list": "sched-zones"} if field.name == "timezone" else {})
    texts: dict[str, Any] = {"label": gettext_lazy(field.label), "required": False}
    if field.help:
        texts["help_text"] = gettext_lazy(field.help)
    choices = [(value, gettext_lazy(label)) for value, label in field.choices]
    match field:
        case Flag():
            return forms.BooleanField(**texts, widget=forms.CheckboxInput(attrs))
        case Whole():
            return forms.IntegerField(**texts, widget=forms.NumberInput(attrs))
        case Choice():
            return forms.ChoiceField(**texts, choices=choices, widget=forms.Select(attrs))
        case Several() if choices:
            choices = [(WORKDAYS, gettext_lazy("Monday to Friday")), *choices] if field.name == "days" else choices
            return forms.MultipleChoiceField(**texts, choices=choices, widget=forms.CheckboxSelectMultiple(attrs))
    return forms.CharField(**texts, widget=forms.TextInput(attrs))


def _of_kinds(*kinds: str) -> dict[str, Any]:
    return {"data-kinds": " ".join(str(NUMBERS[kind]) for kind in kinds)}


DECLARED = _declared()


class ScheduleFields(forms.Form):
    """One kind is chosen; the fields of the others are left alone."""

    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=CHOICES, widget=KindSelect)
    interval_preset = forms.ChoiceField(
        label=gettext_lazy("Every"), choices=PRESETS, required=False, widget=forms.RadioSelect(_of_kinds("every"))
    )
    # In the body of a class this is its namespace: declared fields, as if they were written out.
    locals().update({name: _form_field(*declared) for name, declared in DECLARED.items()})
    text = forms.CharField(
        label=gettext_lazy("Schedule as text"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(_of_kinds(TEXT)),
        help_text=gettext_lazy("Such as every 1h30m, daily at 03:00 @ Europe/Berlin, cron 0 9 * * 1-5, manual."),
    )


SCHEDULE_FIELDS = list(ScheduleFields.base_fields)


def main_field(kind: str) -> str:
    """Return the form field that tells most of a kind."""
    fields = KINDS[kind].fields if kind in KINDS else ()
    return fields[0].form_name if fields else TEXT if kind == TEXT else "kind"


def field_of(kind: str, error: InvalidSchedule) -> str:
    """Return the form field that an error of a schedule belongs to."""
    fields = KINDS[kind].fields if kind in KINDS else ()
    names = {key: field.form_name for field in fields for key in field.keys}
    return "kind" if fields and error.field == "type" else names.get(error.field, main_field(kind))


def schedule_data(data: Mapping[str, Any]) -> Any:
    """Return what `parse` reads, of the fields of the chosen kind; raises InvalidSchedule."""
    kind = data.get("kind", "")
    if kind == TEXT:
        return parse(data.get("text", ""))
    if kind not in KINDS:
        raise InvalidSchedule(_("Choose a kind."), field="type")
    found: dict[str, Any] = {"type": kind}
    data = _with_workdays(data)
    for field in KINDS[kind].fields:
        try:
            found |= field.read(_with_preset(data) if KINDS[kind].is_interval else data)
        except InvalidSchedule as error:
            raise InvalidSchedule(_(str(error)), field=error.field) from None
    return found


def _with_workdays(data: Mapping[str, Any]) -> Mapping[str, Any]:
    chosen = data.get("days") or []
    if WORKDAYS not in chosen:
        return data
    days = [value for value, _label in DECLARED["days"][0].choices]
    return {**data, "days": [day for day in days if day in (*days[:5], *chosen)]}


def _with_preset(data: Mapping[str, Any]) -> dict[str, Any]:
    preset = data.get("interval_preset") or OTHER
    interval = data.get("interval") if preset in (OTHER, OFF) else preset
    return {**data, "interval": interval or ("24h" if preset == OFF else "")}


def initial_of(schedule: Schedule | Unreadable) -> dict[str, Any]:
    """Return what the form shows for a schedule; what it has no fields for is shown as text."""
    found: dict[str, Any] = {"kind": TEXT, "text": str(schedule), "interval_preset": OTHER}
    if isinstance(schedule, Unreadable) or schedule.kind not in KINDS or _has_more(schedule):
        return found
    found |= {"kind": schedule.kind, **{field.form_name: field.shown(schedule) for field in schedule.fields}}
    if schedule.is_interval:
        preset = "24h" if found["interval"] == "1d" else found["interval"]
        found["interval_preset"] = preset if preset in dict(PRESETS) else OTHER
    return found


def _has_more(schedule: Any) -> bool:
    """Whether a schedule says something for which its kind declares no field."""
    declared = {name for field in schedule.fields for name in (field.name, *field.keys)}
    return any(getattr(schedule, one.name) != one.default for one in fields_of(schedule) if one.name not in declared)
