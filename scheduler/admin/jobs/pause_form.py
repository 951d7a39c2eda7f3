"""The form of a pause: why, and until when."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.engine.views.datetimes import said

FOREVER, HOUR, TOMORROW, WEEK, OTHER = "", "hour", "tomorrow", "week", "other"


class PauseForm(forms.Form):
    """A reason, and an end: none, a common one, or an instant of the project's time zone."""

    reason = forms.CharField(label=_("Reason"), max_length=500, required=False, widget=forms.TextInput)
    until = forms.ChoiceField(
        label=_("Until"),
        required=False,
        choices=[
            (FOREVER, _("it is resumed")),
            (HOUR, _("in one hour")),
            (TOMORROW, _("tomorrow at this time")),
            (WEEK, _("in one week")),
            (OTHER, _("the time below")),
        ],
    )
    at = forms.DateTimeField(
        label=_("Time"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"],
    )

    def __init__(self, *args: Any, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now
        self.fields["at"].help_text = _("In the time zone %(zone)s.") % {"zone": settings.TIME_ZONE}

    def clean(self) -> dict[str, Any]:
        """Work out the end of the pause, which must lie ahead."""
        data = super().clean() or {}
        now, choice = self.now, data.get("until", FOREVER)
        data["ends_at"] = {
            HOUR: now + timedelta(hours=1),
            TOMORROW: now + timedelta(days=1),
            WEEK: now + timedelta(days=7),
        }.get(choice)
        if choice == OTHER and "at" in data:
            data["ends_at"] = _aware(data["at"])
            if data["ends_at"] is None or data["ends_at"] <= now:
                self.add_error("at", _("Write a time that lies ahead, or choose another end."))
        return data


def pause_words(form: PauseForm) -> str:
    """Return what a valid form asks for, as it is told and kept in the history."""
    until, reason = form.cleaned_data["ends_at"], form.cleaned_data["reason"]
    words = gettext("Paused until {time}.").format(time=said(until)) if until else gettext("Paused.")
    return f"{words} {reason}".strip()


def _aware(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=ZoneInfo(settings.TIME_ZONE)) if at is not None else None
