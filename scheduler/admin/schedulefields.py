"""The fields of every kind of schedule in one form, and the way from them to a schedule and back."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler.exceptions import InvalidSchedule
from scheduler.models.fields import Unreadable
from scheduler.schedules import OnActivity, Schedule, format_duration, parse

OFF, OTHER = "off", ""
KINDS = [
    ("every", gettext_lazy("interval")),
    ("daily", gettext_lazy("daily")),
    ("weekly", gettext_lazy("weekly")),
    ("monthly", gettext_lazy("monthly")),
    ("cron", gettext_lazy("cron")),
    ("once", gettext_lazy("once")),
    ("after_jobs", gettext_lazy("after other jobs")),
    ("on_activity", gettext_lazy("when users are active")),
    ("manual", gettext_lazy("by hand")),
    ("text", gettext_lazy("one line of text")),
]
PRESETS = [
    *[(f"{hours}h", gettext_lazy("%s h") % hours) for hours in (1, 3, 6, 12, 24)],
    (OTHER, gettext_lazy("other")),
    (OFF, gettext_lazy("off")),
]
DAYS = [
    ("mon", gettext_lazy("Monday")), ("tue", gettext_lazy("Tuesday")), ("wed", gettext_lazy("Wednesday")),
    ("thu", gettext_lazy("Thursday")), ("fri", gettext_lazy("Friday")), ("sat", gettext_lazy("Saturday")),
    ("sun", gettext_lazy("Sunday")),
]  # fmt: skip
ONE_USER = [
    ("1", gettext_lazy("a user")),
    ("2", gettext_lazy("a user on one device")),
    ("3", gettext_lazy("a user on one device, with one agent")),
]
OUTCOMES = [("success", gettext_lazy("each has succeeded")), ("finish", gettext_lazy("each has ended"))]


def zone_names() -> list[str]:
    """Return the names of all time zones, for the field that completes them."""
    return sorted(name for name in available_timezones() if "/" in name or name == "UTC")


class ScheduleFields(forms.Form):
    """One kind is chosen; the fields of the others are left alone."""

    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=KINDS, widget=forms.RadioSelect)
    interval_preset = forms.ChoiceField(
        label=gettext_lazy("Every"), choices=PRESETS, required=False, widget=forms.RadioSelect
    )
    interval = forms.CharField(
        label=gettext_lazy("Interval"),
        required=False,
        help_text=gettext_lazy("For “other”, and after an activity: for example 90s, 5m, 1h30m or 2d."),
    )
    from_completion = forms.BooleanField(label=gettext_lazy("Counted from the end of the last run"), required=False)
    time = forms.CharField(label=gettext_lazy("Time"), required=False, help_text=gettext_lazy("Such as 03:00."))
    days = forms.MultipleChoiceField(
        label=gettext_lazy("Days"), choices=DAYS, required=False, widget=forms.CheckboxSelectMultiple
    )
    month_day = forms.IntegerField(
        label=gettext_lazy("Day of the month"),
        required=False,
        help_text=gettext_lazy("1 to 31, or -1 for the last day. A month without that day is left out."),
    )
    expression = forms.CharField(
        label=gettext_lazy("Cron expression"),
        required=False,
        help_text=gettext_lazy(
            "Minute, hour, day, month, weekday, such as 0 9 * * 1-5; six fields begin with seconds."
        ),
    )
    once_at = forms.CharField(
        label=gettext_lazy("Date and time"), required=False, help_text=gettext_lazy("Such as 2027-01-31 12:00.")
    )
    jobs = forms.CharField(
        label=gettext_lazy("Jobs"), required=False, help_text=gettext_lazy("Names of jobs, with commas between them.")
    )
    jobs_on = forms.ChoiceField(label=gettext_lazy("When"), choices=OUTCOMES, required=False)
    user_timeout = forms.CharField(
        label=gettext_lazy("One run may take"), required=False, help_text=gettext_lazy("Such as 5m.")
    )
    user_ttl = forms.CharField(
        label=gettext_lazy("Missed after"),
        required=False,
        help_text=gettext_lazy("Such as 2h: a user who is due for longer, and nobody has run it, has no run."),
    )
    user_retries = forms.IntegerField(
        label=gettext_lazy("Failures that block a user"),
        required=False,
        help_text=gettext_lazy("After so many in a row, the next run of the user comes a day later, or later still."),
    )
    user_dimensions = forms.ChoiceField(label=gettext_lazy("One run for each"), choices=ONE_USER, required=False)
    timezone = forms.CharField(
        label=gettext_lazy("Time zone"),
        required=False,
        widget=forms.TextInput(attrs={"list": "sched-zones"}),
        help_text=gettext_lazy("Such as Europe/Berlin; empty: the time zone of the project."),
    )
    jitter = forms.CharField(
        label=gettext_lazy("Jitter"),
        required=False,
        help_text=gettext_lazy("The longest random delay of a start, such as 30s; spreads jobs that share a minute."),
    )
    text = forms.CharField(
        label=gettext_lazy("Schedule as text"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Such as every 1h30m, daily at 03:00 @ Europe/Berlin, cron 0 9 * * 1-5, manual."),
    )


SCHEDULE_FIELDS = list(ScheduleFields.base_fields)
FIELD_OF = {
    "seconds": "interval", "minutes": "interval", "hours": "interval", "days": "days", "day": "month_day",
    "hour": "time", "minute": "time", "second": "time", "at": "once_at", "type": "kind", "on": "jobs_on",
    "timeout": "user_timeout", "task_ttl": "user_ttl", "max_retries": "user_retries", "dimensions": "user_dimensions",
}  # fmt: skip
MAIN_FIELD = {
    "every": "interval", "daily": "time", "weekly": "days", "monthly": "month_day", "cron": "expression",
    "once": "once_at", "after_jobs": "jobs", "on_activity": "interval", "text": "text", "manual": "kind",
}  # fmt: skip


def field_of(kind: str, error: InvalidSchedule) -> str:
    """Return the form field that an error of a schedule belongs to."""
    if error.field in ("timezone", "jitter") and kind not in ("text", "manual", "after_jobs", "on_activity"):
        return error.field
    if kind in ("daily", "weekly", "monthly", "every", "once", "after_jobs", "on_activity"):
        found = FIELD_OF.get(error.field, MAIN_FIELD[kind])
        return MAIN_FIELD[kind] if kind == "every" else found
    return MAIN_FIELD.get(kind, "kind")


def schedule_data(data: dict[str, Any]) -> Any:
    """Return what `parse` reads, of the fields of the chosen kind; raises InvalidSchedule."""
    kind = data.get("kind", "")
    if kind == "text":
        return parse(data.get("text", ""))
    if kind not in _BUILDERS:
        raise InvalidSchedule(_("Choose a kind."), field="type")
    found: dict[str, Any] = {"type": kind} | _BUILDERS[kind](data)
    if kind in ("daily", "weekly", "monthly", "cron", "once") and data.get("timezone"):
        found["timezone"] = data["timezone"].strip()
    if kind in ("every", "daily", "weekly", "monthly", "cron") and data.get("jitter"):
        found["jitter"] = data["jitter"].strip()
    return found


def _every(data: dict[str, Any]) -> dict[str, Any]:
    preset = data.get("interval_preset") or OTHER
    interval = data.get("interval", "").strip() if preset in (OTHER, OFF) else preset
    if not interval and preset == OFF:
        interval = "24h"
    if not interval:
        raise InvalidSchedule(_("Choose an interval, or write one such as 1h30m."), field="interval")
    return {"interval": interval, "from_completion": bool(data.get("from_completion"))}


def _clock(data: dict[str, Any]) -> dict[str, Any]:
    parts = data.get("time", "").strip().split(":")
    if len(parts) not in (2, 3) or not all(part.isdecimal() and len(part) <= 2 for part in parts):
        raise InvalidSchedule(_("Write a time such as 03:00."), field="hour")
    return dict(zip(("hour", "minute", "second"), map(int, parts), strict=False))


def _weekly(data: dict[str, Any]) -> dict[str, Any]:
    if not data.get("days"):
        raise InvalidSchedule(_("Choose at least one day."), field="days")
    return {"days": data["days"], **_clock(data)}


def _monthly(data: dict[str, Any]) -> dict[str, Any]:
    if data.get("month_day") is None:
        raise InvalidSchedule(_("Write a day from 1 to 31, or -1 for the last day."), field="day")
    return {"day": data["month_day"], **_clock(data)}


def _cron(data: dict[str, Any]) -> dict[str, Any]:
    if not data.get("expression", "").strip():
        raise InvalidSchedule(_("Write a cron expression such as 0 9 * * 1-5."), field="expression")
    return {"expression": data["expression"].strip()}


def _once(data: dict[str, Any]) -> dict[str, Any]:
    if not data.get("once_at", "").strip():
        raise InvalidSchedule(_("Write a date and time such as 2027-01-31 12:00."), field="at")
    return {"at": data["once_at"].strip()}


def _after(data: dict[str, Any]) -> dict[str, Any]:
    names = [name.strip() for name in data.get("jobs", "").split(",")]
    return {"jobs": [name for name in names if name], "on": data.get("jobs_on") or "success"}


def _users(data: dict[str, Any]) -> dict[str, Any]:
    interval = data.get("interval", "").strip()
    if not interval:
        raise InvalidSchedule(_("Write after which time, such as 30m."), field="interval")
    texts = {"timeout": data.get("user_timeout", "").strip(), "task_ttl": data.get("user_ttl", "").strip()}
    numbers = {"max_retries": data.get("user_retries"), "dimensions": int(data.get("user_dimensions") or 0) or None}
    given = {name: text for name, text in texts.items() if text}
    return {"interval": interval, **given, **{name: number for name, number in numbers.items() if number is not None}}


_BUILDERS: dict[str, Any] = {
    "every": _every, "daily": _clock, "weekly": _weekly, "monthly": _monthly, "cron": _cron, "once": _once,
    "after_jobs": _after, "on_activity": _users, "manual": lambda data: {},
}  # fmt: skip


def initial_of(schedule: Schedule | Unreadable) -> dict[str, Any]:
    """Return what the form shows for a schedule; what it has no fields for is shown as text."""
    found: dict[str, Any] = {"kind": "text", "text": str(schedule), "interval_preset": OTHER}
    if isinstance(schedule, Unreadable) or schedule.kind not in _BUILDERS:
        return found
    data = schedule.to_dict()
    kind = data.pop("type")
    if "anchor" in data:
        return found
    found |= {"kind": kind, "timezone": data.pop("timezone", ""), "from_completion": data.get("from_completion", False)}
    found["jitter"] = format_duration(schedule.jitter) if schedule.jitter else ""
    if "hour" in data:
        clock = [data["hour"], data["minute"], *([data["second"]] if data.get("second") else [])]
        found["time"] = ":".join(f"{part:02}" for part in clock)
    if kind == "every":
        found["interval"] = schedule.to_text().split()[1]
        if found["interval"] in dict(PRESETS) or found["interval"] == "1d":
            found["interval_preset"] = {"1d": "24h"}.get(found["interval"], found["interval"])
    if kind == "after_jobs":
        found |= {"jobs": ", ".join(data["jobs"]), "jobs_on": data["on"]}
    if isinstance(schedule, OnActivity):
        found |= _initial_of_users(schedule)
    names = {"days": "days", "day": "month_day", "expression": "expression", "at": "once_at"}
    found |= {names[key]: value for key, value in data.items() if key in names}
    return found


def _initial_of_users(rules: OnActivity) -> dict[str, Any]:
    return {
        "interval": format_duration(rules.interval),
        "user_timeout": format_duration(rules.timeout),
        "user_ttl": format_duration(rules.task_ttl),
        "user_retries": rules.max_retries,
        "user_dimensions": str(rules.dimensions),
    }
