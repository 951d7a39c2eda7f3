"""The form of a job: what people may decide, checked before anything is saved."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from scheduler.admin.policyfields import PolicyFields, clean_policy, initial_of_policy
from scheduler.admin.preview import Preview, preview_of
from scheduler.admin.schedulefields import OFF, SCHEDULE_FIELDS, ScheduleFields, field_of, initial_of, schedule_data
from scheduler.arguments import checked_kwargs, checked_name, checked_priority
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.control import checked_schedule
from scheduler.engine.control.definition import ask_gate
from scheduler.exceptions import ConfigurationError, InvalidSchedule, SchedulerError
from scheduler.models import Job
from scheduler.registry import registry
from scheduler.schedules import Schedule

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Job]
else:
    _ModelForm = forms.ModelForm

COLUMNS = ("name", "task", "description", "enabled", "schedule", "policy", "kwargs", "group", "priority")
PREVIEW = "_preview"


class JobForm(PolicyFields, ScheduleFields, _ModelForm):
    """Name, task, a schedule of any kind, and each option of the policy."""

    task = forms.ChoiceField(label=_("Task"))

    class Meta:
        model = Job
        fields = ["name", "task", "description", "enabled", "kwargs", "group", "priority"]
        widgets = {"kwargs": forms.Textarea(attrs={"rows": 3}), "description": forms.TextInput(attrs={"size": 60})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        job = self.instance
        names = sorted({*registry.names(), *([job.task] if job.pk else [])})
        if "task" in self.fields:
            self.fields["task"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        if job.pk:
            self.initial.update(initial_of(job.schedule))
            self.initial.update(initial_of_policy(job.policy))
            if not job.enabled and self.initial["kind"] == "every":
                self.initial["interval_preset"] = OFF
        else:
            self.initial = {"kind": "every", "interval_preset": "1h", **self.initial}

    def is_valid(self) -> bool:
        """Whether to save: never when only a preview was asked for."""
        return super().is_valid() and PREVIEW not in self.data

    def clean_kwargs(self) -> Any:
        """Return the keyword arguments, which must be an object."""
        kwargs = self.cleaned_data["kwargs"] or {}
        if not isinstance(kwargs, dict):
            raise ValidationError(_("Write a JSON object."))
        return _passed(checked_kwargs, kwargs)

    def clean_name(self) -> Any:
        """Return the name, if a job may have it."""
        return _passed(checked_name, self.cleaned_data["name"])

    def clean_priority(self) -> Any:
        """Return the priority, if it is one."""
        return _passed(checked_priority, self.cleaned_data["priority"])

    def clean(self) -> dict[str, Any]:
        """Put the schedule together, and ask the gate of a job that is being enabled."""
        data = super().clean() or {}
        self._clean_schedule(data)
        policy = clean_policy(self, data)
        if policy is not None:
            data["policy"] = policy
        if data.get("kind") == "every" and data.get("interval_preset") == OFF:
            data["enabled"] = False
        if data.get("enabled") and not (self.instance.pk and self._stored.enabled):
            try:
                ask_gate(registry.find(data.get("task", "")))
            except SchedulerError as refusal:
                self.add_error("enabled", str(refusal))
        return data

    def _clean_schedule(self, data: dict[str, Any]) -> None:
        if "kind" not in data or any(name in self.errors for name in SCHEDULE_FIELDS):
            return
        name = data.get("name") or self.instance.name
        try:
            data["schedule"] = checked_schedule(schedule_data(data), of=name)
        except InvalidSchedule as error:
            self.add_error(field_of(data["kind"], error), str(error))

    @property
    def changed_data(self) -> list[str]:
        """The columns of the job that change, whichever fields of the form they were made of."""
        return list(self.changes())

    def changes(self) -> dict[str, Any]:
        """Return the columns that differ from what is stored."""
        data = getattr(self, "cleaned_data", {})
        stored = self._stored
        return {name: data[name] for name in COLUMNS if name in data and data[name] != getattr(stored, name)}

    @cached_property
    def _stored(self) -> Job:
        return Job.objects.filter(pk=self.instance.pk).first() or Job()

    @property
    def preview(self) -> Preview | None:
        """The preview of what is in the form, or of the job as it is."""
        now = SYSTEM_CLOCK.now()
        if not self.is_bound:
            job = self.instance
            schedule = job.schedule if job.pk else checked_schedule(schedule_data(dict(self.initial)))
            return preview_of(schedule, now, anchor=job.anchor_at) if isinstance(schedule, Schedule) else None
        schedule = self.cleaned_data.get("schedule") if self.errors is not None else None
        if schedule is not None:
            return preview_of(schedule, now, anchor=self.instance.anchor_at)
        errors = [str(error) for name in SCHEDULE_FIELDS for error in self.errors.get(name, [])]
        return Preview(errors=errors)


def _passed(check: Callable[[Any], Any], value: Any) -> Any:
    """Return what a check makes of a value; its refusal is an error of the form."""
    try:
        return check(value)
    except ConfigurationError as error:
        raise ValidationError(str(error)) from error
