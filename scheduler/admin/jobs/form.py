"""The form of a job: what people may decide, checked before anything is saved."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from scheduler.admin.jobs.arguments_form import arguments_help
from scheduler.admin.jobs.conflicts import TOLD, Edit, Told, read_told, told, told_of
from scheduler.admin.jobs.json_text import JSONTextField
from scheduler.admin.jobs.policy_fields import PREFIX, PolicyFields, clean_policy, initial_of_policy
from scheduler.admin.jobs.preview import shown_preview
from scheduler.admin.jobs.schedule_fields import (
    CHOICES,
    OFF,
    SCHEDULE_FIELDS,
    ScheduleFields,
    field_of,
    initial_of,
    main_field,
    schedule_data,
)
from scheduler.arguments import checked_name
from scheduler.definition import CHECKS, COLUMNS
from scheduler.engine.control import checked_schedule, has_users, refuse_wrong_call
from scheduler.engine.views.preview import Preview, preview
from scheduler.exceptions import ConfigurationError, InvalidOption, InvalidSchedule, SchedulerError
from scheduler.models import Job
from scheduler.models.stored import Unreadable
from scheduler.registry import registry
from scheduler.schedules import Schedule
from scheduler.schedules.kinds import KINDS

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Job]
else:
    _ModelForm = forms.ModelForm

PREVIEW = "_preview"
PLAIN = [column for column in COLUMNS if column not in ("schedule", "policy")]
"""The columns of a definition that each have one field."""
NEXT = 5
"""So many slots to come are shown beside the form."""


class JobForm(PolicyFields, ScheduleFields, _ModelForm):
    """Name, task, a schedule of any kind, and each option of the policy."""

    task = forms.ChoiceField(label=_("Task"))
    shown = forms.CharField(widget=forms.HiddenInput, required=False)
    """The job as the form was opened with it, to tell changes by others from changes by this person."""

    now: datetime
    """When the form is shown or sent."""
    refusal: SchedulerError | None = None
    """Why the scheduler did not take what was sent before; told beside what was typed."""

    class Meta:
        model = Job
        fields = ["name", "task", *PLAIN]
        field_classes = {"kwargs": JSONTextField}
        widgets = {"kwargs": forms.Textarea(attrs={"rows": 3}), "description": forms.TextInput(attrs={"size": 60})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        job = self.instance
        names = sorted({*registry.names(), *([job.task] if job.pk else [])})
        if "task" in self.fields:
            self.fields["task"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        if not (has_users(job.name) or job.schedule.for_users):
            offered = [one for one in CHOICES if one[0] not in KINDS or not KINDS[one[0]].for_users]
            self.fields["kind"].choices = offered  # type: ignore[attr-defined]
        if job.pk:
            self.initial.update(initial_of(job.schedule) | initial_of_policy(job.policy))
            self.initial["shown"] = json.dumps(told_of(job))
        else:
            self.initial = {"kind": "every", "interval_preset": "1h", **self.initial}
        self._changes: dict[str, Any] = {}
        self._tell_arguments()

    def _tell_arguments(self) -> None:
        """Say beside the keyword arguments what the function of the task takes."""
        task = registry.find(str(self.data.get("task") or self.instance.task))
        if task is not None and "kwargs" in self.fields:
            self.fields["kwargs"].help_text = arguments_help(task)

    def is_valid(self) -> bool:
        """Whether to save: never when only a preview was asked for."""
        return super().is_valid() and not self._is_preview

    def clean_kwargs(self) -> Any:
        """Return the keyword arguments, which must be an object."""
        kwargs = self.cleaned_data["kwargs"] or {}
        if not isinstance(kwargs, dict):
            raise ValidationError(_("Write a JSON object."))
        return kwargs

    def clean_name(self) -> Any:
        """Return the name, if a job may have it."""
        try:
            return checked_name(self.cleaned_data["name"])
        except ConfigurationError as error:
            raise ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Put the schedule together, and find what the person changed."""
        data = super().clean() or {}
        for name in data.keys() & set(PLAIN):
            self._clean_column(data, name)
        self._clean_schedule(data)
        policy = clean_policy(self, data, self.now)
        if policy is not None:
            data["policy"] = policy
        self._clean_off(data)
        if not self._is_preview:
            self._clean_edit(data)
            self._clean_call()
        if self.refusal is not None:
            is_gate = getattr(self.refusal, "code", "") == "gate_closed"
            self.add_error("enabled" if is_gate and "enabled" in self.changed_data else None, str(self.refusal))
        return data

    def _clean_column(self, data: dict[str, Any], name: str) -> None:
        try:
            data[name] = CHECKS[name](data[name])
        except ConfigurationError as error:
            self.add_error(name, str(error))

    def _clean_schedule(self, data: dict[str, Any]) -> None:
        if "kind" not in data or any(name in self.errors for name in SCHEDULE_FIELDS):
            return
        name = data.get("name") or self.instance.name
        try:
            data["schedule"] = checked_schedule(schedule_data(data), of=name)
        except InvalidSchedule as error:
            self.add_error(field_of(data["kind"], error), str(error))

    def _clean_off(self, data: dict[str, Any]) -> None:
        """Off disables the job, unless “Enabled” was ticked in the same form: then the intention is unclear."""
        kind = KINDS.get(data.get("kind", ""))
        if kind is None or not kind.is_interval or data.get("interval_preset") != OFF:
            return
        if data.get("enabled") and not self._shown(data).get("enabled"):
            self.add_error("interval_preset", _("“Off” and “Enabled” contradict each other: choose one of them."))
        data["enabled"] = False

    def _clean_edit(self, data: dict[str, Any]) -> None:
        """Find the columns to write; where others changed a field too, show both values beside it."""
        wanted = {name: data[name] for name in TOLD if name in data}
        if not self.instance.pk:
            self._changes = wanted
            return
        edit = Edit(shown=self._shown(data), wanted=told(wanted), stored=told_of(self._stored))
        conflicts = edit.conflicts
        for name in sorted(conflicts):
            self.add_error(main_field(data["kind"]) if name == "schedule" else name, edit.words(name))
        try:
            self._changes = edit.columns(wanted, self._stored)
        except InvalidOption as error:
            words = _("Others changed options that do not go with yours: {error} Save again to replace theirs.")
            self.add_error(None, words.format(error=error))
            conflicts |= {name for name in edit.stored if name.startswith(PREFIX)}
        if conflicts:
            self._show(edit.shown_with(conflicts))

    def _clean_call(self) -> None:
        """Say beside the arguments that the function of the task does not take them."""
        try:
            refuse_wrong_call(self._stored, self._changes)
        except InvalidOption as error:
            self.add_error("kwargs" if "kwargs" in self.fields else None, str(error))

    def _show(self, job: Told) -> None:
        """Let the form that is sent back with its errors say that it has shown this."""
        sent: Any = self.data
        self.data = sent.copy()
        self.data["shown"] = json.dumps(job)  # type: ignore[index]

    @property
    def _is_preview(self) -> bool:
        return PREVIEW in self.data

    def _shown(self, data: dict[str, Any]) -> Told:
        """Return the job as the form was opened with it; as it is now when the form does not say."""
        return read_told(data.get("shown", "")) or told_of(self._stored)

    @cached_property
    def _stored(self) -> Job:
        """The job as it is, while the instance of the form becomes what was sent; of a new one the defaults."""
        return Job.objects.filter(pk=self.instance.pk).first() or Job()

    @property
    def changed_data(self) -> list[str]:
        """The columns of the job that change, whichever fields of the form they were made of."""
        return list(self._changes)

    def changes(self) -> dict[str, Any]:
        """Return the columns to write: what the person changed, and nothing else."""
        return dict(self._changes)

    @property
    def preview(self) -> Preview | None:
        """The preview of what is in the form, or of the job as it is."""
        try:
            schedule = self._previewed_schedule()
        except InvalidSchedule as error:
            return Preview(errors=[str(error)])
        if isinstance(schedule, Schedule):
            return shown_preview(preview(schedule, self.now, NEXT, anchor=self.instance.anchor_at), self.now)
        if not self.is_bound:
            return None
        return Preview(errors=[str(error) for name in SCHEDULE_FIELDS for error in self.errors.get(name, [])])

    def _previewed_schedule(self) -> Schedule | Unreadable | None:
        if self.is_bound:
            return self.cleaned_data.get("schedule") if self.errors is not None else None
        if self.instance.pk:
            schedule: Schedule | Unreadable = self.instance.schedule
            return schedule
        return checked_schedule(schedule_data(dict(self.initial)))
