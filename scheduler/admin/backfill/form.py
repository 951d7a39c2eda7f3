"""The form of a backfill: from when to when, by the clock of the job, and which of the slots."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduler.engine.views.datetimes import local, parse_moment, zone_of_schedule
from scheduler.exceptions import InvalidOption
from scheduler.models import Job

MISSING, FAILED, ALL = "missing", "failed", "all"
WRITTEN = "%Y-%m-%dT%H:%M"


class BackfillForm(forms.Form):
    """A stretch of time and a choice. Instants are read as those of “why did it not run at …?” are."""

    start = forms.CharField(label=_("From"), widget=forms.DateTimeInput(attrs={"type": "datetime-local"}))
    end = forms.CharField(label=_("To"), widget=forms.DateTimeInput(attrs={"type": "datetime-local"}))
    only = forms.ChoiceField(
        label=_("Which slots"),
        choices=[
            (MISSING, _("those that never ran")),
            (FAILED, _("those whose last attempt failed")),
            (ALL, _("all of them")),
        ],
    )

    def __init__(self, job: Job, now: datetime, data: Any = None, *, runs_are_seen: bool = True, **more: Any) -> None:
        self.zone, self.now = zone_of_schedule(job.schedule), now
        day_ago = local(now - timedelta(days=1), self.zone)
        first = {"start": f"{day_ago:{WRITTEN}}", "end": f"{local(now, self.zone):{WRITTEN}}", "only": MISSING}
        super().__init__(data, initial=first, **more)
        if not runs_are_seen:  # how many slots failed is known of the runs
            choices: Any = self.fields["only"]
            choices.choices = [choice for choice in choices.choices if choice[0] != FAILED]
        words = gettext("In the time zone %(zone)s.") % {"zone": self.zone.key}
        self.fields["start"].help_text = self.fields["end"].help_text = words

    def clean_start(self) -> datetime:
        """Return the instant."""
        return self._instant("start")

    def clean_end(self) -> datetime:
        """Return the instant."""
        return self._instant("end")

    def clean(self) -> dict[str, Any]:
        """Refuse a stretch that ends before it begins."""
        data = super().clean() or {}
        if "start" in data and "end" in data and data["end"] < data["start"]:
            self.add_error(None, gettext("The end lies before the beginning."))
        return data

    def _instant(self, name: str) -> datetime:
        try:
            return parse_moment(self.cleaned_data[name], self.now, self.zone)
        except InvalidOption as error:
            raise forms.ValidationError(str(error)) from None
