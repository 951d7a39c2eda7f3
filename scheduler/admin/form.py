"""The form of a job: what people may decide, checked before anything is saved."""

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from scheduler.engine.control import checked_schedule
from scheduler.exceptions import ConfigurationError
from scheduler.models import Job
from scheduler.policy.codec import from_options
from scheduler.registry import registry

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Job]
else:
    _ModelForm = forms.ModelForm


class JobForm(_ModelForm):
    """Name, task, schedule as a line of text, policies as JSON."""

    task = forms.ChoiceField(label=_("task"))
    schedule = forms.CharField(
        label=_("schedule"),
        max_length=2000,
        help_text=_("For example: every 1h30m, daily at 03:00 @ Europe/Berlin, cron 0 9 * * 1-5, manual."),
        widget=forms.TextInput(attrs={"size": 60}),
    )
    policy = forms.JSONField(
        label=_("policies"),
        required=False,
        help_text=_('Options that differ from the defaults, for example {"retries": 2, "overlap": "queue_one"}.'),
    )

    class Meta:
        model = Job
        fields = ["name", "task", "description", "schedule", "enabled", "kwargs", "policy"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        job = self.instance
        names = sorted({*registry.names(), *([job.task] if job.pk else [])})
        self.fields["task"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        if job.pk:
            self.initial["schedule"] = str(job.schedule)
            self.initial["policy"] = json.loads(Job._meta.get_field("policy").value_to_string(job) or "{}")

    def clean_schedule(self) -> Any:
        """Return the schedule, or what is wrong with it and what to write instead."""
        try:
            return checked_schedule(self.cleaned_data["schedule"])
        except ConfigurationError as error:
            raise ValidationError(str(error)) from error

    def clean_policy(self) -> Any:
        """Return the policies, or the option that is wrong."""
        options = self.cleaned_data["policy"] or {}
        if not isinstance(options, dict):
            raise ValidationError(_("Write a JSON object."))
        try:
            return from_options(options)
        except ConfigurationError as error:
            raise ValidationError(str(error)) from error

    def clean_kwargs(self) -> Any:
        """Return the keyword arguments, which must be an object."""
        kwargs = self.cleaned_data["kwargs"]
        if not isinstance(kwargs or {}, dict):
            raise ValidationError(_("Write a JSON object."))
        return kwargs or {}
