"""The form of a new token."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from scheduler.exceptions import InvalidOption
from scheduler.models import ApiToken
from scheduler.tokens.issue import checked_token_name

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[ApiToken]
else:
    _ModelForm = forms.ModelForm

MINE, OF_NONE = "mine", "none"
FOR_EVER = ""


class TokenForm(_ModelForm):
    """A name, a scope, how long it lasts, and whose permissions it has."""

    lasts = forms.ChoiceField(
        label=_("Lasts"),
        required=False,
        initial="90",
        choices=[("30", _("30 days")), ("90", _("90 days")), ("365", _("one year")), (FOR_EVER, _("until revoked"))],
    )
    whose = forms.ChoiceField(
        label=_("Permissions"), initial=MINE, help_text=_("Within its scope. A token of a user ends with that user.")
    )

    now: datetime
    """When the form is shown or sent."""
    may_do_all: bool
    """Whether a token of no user gives its maker nothing new."""

    class Meta:
        model = ApiToken
        fields = ("name", "scope")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        of_none = [(OF_NONE, _("all that the scope allows, of no user"))] if self.may_do_all else []
        self.fields["whose"].choices = [(MINE, _("mine")), *of_none]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        """Return a name that the history of a job can tell."""
        try:
            return checked_token_name(self.cleaned_data["name"])
        except InvalidOption as error:
            raise forms.ValidationError(str(error)) from error

    @property
    def expires_at(self) -> datetime | None:
        """When the token of a valid form ends."""
        days = self.cleaned_data["lasts"]
        return self.now + timedelta(days=int(days)) if days else None
