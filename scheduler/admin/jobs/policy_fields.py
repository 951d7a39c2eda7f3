"""The policies as fields of the form of a job: empty means the default, which is shown; only the rest is stored."""

import json
from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from scheduler.admin.jobs.policy_options import Option, executor_words, option_groups
from scheduler.admin.jobs.policy_text import choices_of, text_of, value_of
from scheduler.exceptions import ConfigurationError, InvalidOption
from scheduler.models.stored import Unreadable
from scheduler.policy import DEFAULT_POLICY, Policy
from scheduler.policy.base import differences
from scheduler.policy.codec import kind_of, read_option

PREFIX = "policy_"
LONGEST = 10_000
"""Characters of an option: more than anybody writes, so that what the code says can be saved untouched."""
YES_OR_NO = {"True": _("yes"), "False": _("no")}


def _field(option: Option) -> forms.Field:
    kind, optional = kind_of(option.name)
    default = getattr(DEFAULT_POLICY, option.name)
    if option.name == "executor" or choices_of(kind):
        choices = partial(_choices, option, kind, str(default))  # asked for each form: executors may be added
        return forms.ChoiceField(label=option.label, help_text=option.help, required=False, choices=choices)
    empty = format_lazy(_("Left empty: {default}."), default=option.empty if default is None else text_of(default))
    return forms.CharField(
        label=option.label,
        help_text=format_lazy("{} {}", option.help, empty) if option.help else empty,
        required=False,
        max_length=LONGEST,
        widget=forms.TextInput(attrs={"inputmode": "numeric"} if kind is int and not optional else {}),
    )


def _choices(option: Option, kind: Any, default: str) -> list[tuple[str, Any]]:
    words = executor_words() if option.name == "executor" else option.choices
    words = {name: words.get(name, YES_OR_NO.get(name, name)) for name in choices_of(kind) or words}
    first = ("", format_lazy("{} ({})", words.pop(default), _("default")))
    return [first, *words.items()]


class PolicyFields(forms.Form):
    """A form with a field for each option of the policy."""

    # In the body of a class this is its namespace: declared fields, as if they were written out.
    locals().update({PREFIX + option.name: _field(option) for _label, options in option_groups() for option in options})


POLICY_FIELDS = [(label, [PREFIX + option.name for option in options]) for label, options in option_groups()]
"""The names of the fields by group."""


def initial_of_policy(policy: Policy | Unreadable) -> dict[str, str]:
    """Return what the fields show: what differs from the defaults, and of an unreadable policy what can be read."""
    values = _readable(policy.text) if isinstance(policy, Unreadable) else differences(policy)
    return {PREFIX + name: text_of(value) for name, value in values.items()}


def _readable(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        return found
    for name, value in options.items() if isinstance(options, dict) else ():
        try:
            found[name] = read_option(name, value)
        except ConfigurationError:
            continue
    return found


def clean_policy(form: forms.Form, data: dict[str, Any], now: datetime) -> Policy | None:
    """Return the policy that the fields make; None after errors were put where they belong."""
    options: dict[str, Any] = {}
    failed = False
    for field in (field for _label, fields in POLICY_FIELDS for field in fields):
        text, name = data.get(field, ""), field.removeprefix(PREFIX)
        failed |= field in form.errors
        try:
            options |= {name: value_of(name, text, now)} if text.strip() else {}
        except (ConfigurationError, ValueError) as error:
            form.add_error(field, str(error))
            failed = True
    try:
        return None if failed else Policy(**options)
    except InvalidOption as error:
        # The message of a policy begins with the name of the option that is to be changed.
        field = PREFIX + str(error).partition(" ")[0]
        form.add_error(field if field in form.fields else None, str(error))
        return None
