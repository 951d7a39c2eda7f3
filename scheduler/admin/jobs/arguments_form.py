"""The form of the arguments of one run, made from the signature of the function of its task."""

import inspect
from collections.abc import Callable, Mapping
from datetime import date
from enum import Enum
from functools import partial
from inspect import Parameter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from scheduler.admin.jobs.json_text import JSONTextField, json_text
from scheduler.admin.times import DASH
from scheduler.registry import Task
from scheduler.signatures import BY_NAME

PREFIX = "argument-"
"""Before the name of each field: that of an argument may be one which the page uses itself."""
FURTHER = "further"
LONGEST_CHOICE = 60
NOT_GIVEN = ("", None)
PLAIN: dict[type, Callable[..., forms.Field]] = {
    int: forms.IntegerField,
    float: partial(forms.FloatField, widget=forms.NumberInput(attrs={"step": "any"})),
    str: partial(forms.CharField, strip=False, widget=forms.TextInput(attrs={"size": 40})),
    date: partial(forms.DateField, widget=forms.DateInput(attrs={"type": "date"})),
}
"""The field of each plain kind."""


class ArgumentsForm(forms.Form):
    """A field for each argument that can be given by name, filled with what the job gives.

    An argument with a default is left out of the call where its field is empty.
    """

    def __init__(self, task: Task, kwargs: Mapping[str, Any], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._takes_more = False
        self._optional: dict[str, Any] = {}
        for parameter in _parameters(task):
            if parameter.kind is Parameter.VAR_KEYWORD:
                self._takes_more = True
            elif parameter.kind in BY_NAME:
                self._optional[parameter.name] = parameter.default
                self.fields[PREFIX + parameter.name] = _field_of(parameter, kwargs)
        if self._takes_more:
            rest = {name: value for name, value in kwargs.items() if name not in self._optional}
            texts: dict[str, Any] = {
                "label": _("Further arguments"),
                "help_text": _("A JSON object: names and values."),
            }
            area = forms.Textarea(attrs={"rows": 3, "cols": 60})
            self.fields[FURTHER] = JSONTextField(required=False, initial=rest, widget=area, **texts)

    def clean_further(self) -> dict[str, Any]:
        """Return the further arguments, which must be an object and have names of their own."""
        given = self.cleaned_data[FURTHER]
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise ValidationError(_("Write a JSON object."))
        if twice := given.keys() & self._optional.keys():
            raise ValidationError(_("%(name)s has a field of its own."), params={"name": min(twice)})
        return given

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments that a valid form asks for."""
        given = {}
        for name, default in self._optional.items():
            value = self.cleaned_data[PREFIX + name]
            if value not in NOT_GIVEN:
                given[name] = value.value if isinstance(value, Chosen) else _plain(value)
            elif default is Parameter.empty:
                given[name] = None
        return given | (self.cleaned_data[FURTHER] if self._takes_more else {})


class Chosen:
    """A value that was chosen of some: it may be None, or an empty text."""

    def __init__(self, value: Any) -> None:
        self.value = value


def takes_arguments(task: Task) -> bool:
    """Return whether there is anything that the call can be given by name."""
    return any(one.kind in (*BY_NAME, Parameter.VAR_KEYWORD) for one in _parameters(task))


def arguments_help(task: Task) -> str:
    """Return what the function of a task takes, as its signature says it."""
    taken = [str(one) for one in _parameters(task) if one.kind in (*BY_NAME, Parameter.VAR_KEYWORD)]
    if not taken:
        return _("The function of the task takes no arguments.")
    said = ", ".join(one if len(one) <= LONGEST_CHOICE else f"{one[: LONGEST_CHOICE - 1]}…" for one in taken)
    return _("The function of the task takes: {arguments}").format(arguments=said)


def _parameters(task: Task) -> list[Parameter]:
    """Return what the function takes, without the context; annotations as objects, where they can be read."""
    try:
        found = list(inspect.signature(task.function, eval_str=True).parameters.values())
    except Exception:  # an annotation of a name that is imported for type checkers only, say
        try:
            found = list(inspect.signature(task.function).parameters.values())
        except (TypeError, ValueError):
            return []
    return found[1:] if task.takes_context else found


def _field_of(parameter: Parameter, kwargs: Mapping[str, Any]) -> forms.Field:
    """Return the field of an argument; one of JSON where what the job gives does not fit the annotation."""
    kind, may_be_none = _without_none(parameter.annotation)
    has_default = parameter.default is not Parameter.empty
    texts: dict[str, Any] = {"label": parameter.name, "required": not (has_default or may_be_none)}
    if has_default:
        texts["help_text"] = _("Left empty: {default}.").format(default=_short(parameter.default))
    given = kwargs.get(parameter.name)
    typed = _typed(kind, texts, given)
    if typed is not None:
        return typed
    help_text = " ".join(filter(None, (_("JSON: a text stands in quotes."), texts.pop("help_text", ""))))
    area = forms.Textarea(attrs={"rows": 2, "cols": 60})
    more = {"initial": given} if parameter.name in kwargs else {}
    return JSONTextField(**texts, **more, help_text=help_text, widget=area)


def _typed(kind: Any, texts: dict[str, Any], given: Any) -> forms.Field | None:
    """Return the field of a plain kind; None for any other, and where the value that is given is of another kind."""
    if (choices := _choices_of(kind)) is not None:
        return _choice(choices, texts, given)
    made = next((make for one, make in PLAIN.items() if one is kind), None)
    return made(initial=given, **texts) if made is not None and _fits(kind, given) else None


def _fits(kind: Any, given: Any) -> bool:
    if kind is date and given is not None:
        return _is_date(given)
    return given is None or type(given) is kind or (kind is float and type(given) is int)


def _choices_of(kind: Any) -> dict[str, Any] | None:
    """Return what can be chosen, by what is said; None for kinds with more values, or with values that JSON lacks."""
    if kind is bool:
        return {_("yes"): True, _("no"): False}
    if get_origin(kind) is Literal:
        values = get_args(kind)
        named = {_short(one): one for one in values}
    elif isinstance(kind, type) and issubclass(kind, Enum):
        values = tuple(one.value for one in kind)
        named = {one.name: one.value for one in kind}
    else:
        return None
    is_plain = all(type(one) in (str, int, float, bool, NoneType) for one in named.values())
    return named if is_plain and len(named) == len(set(values)) else None


def _choice(choices: dict[str, Any], texts: dict[str, Any], given: Any) -> forms.Field | None:
    """Return a field whose choices are numbered: their values need not be texts."""
    values = list(choices.values())
    place = next((at for at, one in enumerate(values) if type(one) is type(given) and one == given), None)
    if place is None and given is not None:
        return None
    return forms.TypedChoiceField(
        **texts,
        choices=[("", DASH), *((str(at), said) for at, said in enumerate(choices))],
        initial="" if place is None else str(place),
        coerce=lambda number: Chosen(values[int(number)]),
        empty_value="",
    )


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """Return the one kind that an annotation names besides None, and whether it names None."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation, False
    kinds = [one for one in get_args(annotation) if one is not NoneType]
    return (kinds[0] if len(kinds) == 1 else annotation), len(kinds) < len(get_args(annotation))


def _is_date(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _short(value: Any) -> str:
    try:
        text = json_text(value.value if isinstance(value, Enum) else value)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= LONGEST_CHOICE else f"{text[: LONGEST_CHOICE - 1]}…"
