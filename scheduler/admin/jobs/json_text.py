"""JSON as people read and write it in the admin."""

import json
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.utils.translation import gettext_lazy as _

from scheduler.arguments import is_storable

LONGEST = 1_000_000
"""Characters of a field: its time to be read grows with them."""
UNREADABLE = (ValueError, RecursionError)
"""What Python raises for JSON beyond its limits: a number of thousands of digits, brackets in brackets in brackets."""


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON with its letters as they are, but for those that no page can carry."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return text if is_storable(text) else json.dumps(value, indent=indent, default=str)


class JSONTextField(forms.JSONField):
    """As Django's, for whatever is written there and whatever is stored."""

    def to_python(self, value: Any) -> Any:
        """Read the JSON; what cannot be read is an error of the field."""
        if isinstance(value, str) and len(value) > LONGEST:
            too_long = _("Write at most %(most)d characters.")
            raise ValidationError(too_long, code="too_long", params={"most": LONGEST})
        try:
            return super().to_python(value)
        except UNREADABLE as error:
            words = self.error_messages["invalid"]
            raise ValidationError(words, code="invalid", params={"value": value}) from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Give back what was written, also when it cannot be read."""
        if isinstance(data, str) and len(data) > LONGEST:
            return InvalidJSONInput(data)
        try:
            return super().bound_data(data, initial)
        except UNREADABLE:
            return InvalidJSONInput(data)

    def prepare_value(self, value: Any) -> Any:
        """Show the value as text."""
        return value if isinstance(value, InvalidJSONInput) else json_text(value)
