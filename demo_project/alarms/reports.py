"""Reports: a task of Django's own kind, enqueued by a page, run by the scheduler in the process that serves it."""

from collections import Counter
from datetime import timedelta
from threading import Event as Pause
from typing import Any
from uuid import uuid4

import django
from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from demo_project.alarms.models import Event, ReportOrder
from scheduler import current_run
from scheduler.contrib.tasks import find_run
from scheduler.models import RunLog

if django.VERSION >= (6,):
    from django.tasks import task
else:
    from django_tasks import task  # type: ignore[no-redef]

MACHINES = ("boiler", "chiller", "compressor", "conveyor", "press", "pump")
MISSING = "reactor"
WEEKS = 5
KEPT = 10
"""Results that a visitor is shown."""
WORDS = {"READY": "waiting", "RUNNING": "running", "SUCCESSFUL": "succeeded", "FAILED": "failed"}


@task
def count_by_week(machine: str) -> dict[str, int]:
    """Count the events of a machine in the last weeks, one week a second."""
    if machine not in MACHINES:
        raise LookupError(f"There is no machine {machine!r}.")
    run, now = current_run(), timezone.now()
    counts: Counter[str] = Counter()
    for week in range(WEEKS):
        Pause().wait(1)
        end = now - timedelta(weeks=week)
        events = Event.objects.filter(source=machine, occurred_at__gt=end - timedelta(weeks=1), occurred_at__lte=end)
        counts.update(events.values_list("severity", flat=True))
        if run is not None:  # it is None where the task is called without the scheduler
            run.check_stop()
            run.progress(week + 1, WEEKS, f"week {week + 1} of {WEEKS}")
    return dict(counts)


class ReportForm(forms.Form):
    """Which machine, and when."""

    machine = forms.ChoiceField(
        choices=[*((name, name) for name in MACHINES), (MISSING, f"{MISSING} (there is none: the task fails)")]
    )
    wait = forms.TypedChoiceField(
        label="Start", coerce=int, choices=[(0, "now"), (10, "in 10 seconds")], required=False
    )
    token = forms.UUIDField(initial=uuid4, widget=forms.HiddenInput(attrs={"autocomplete": "off"}))


class Report:
    """One result as the page shows it."""

    def __init__(self, result: Any, run: RunLog) -> None:
        self.result, self.run = result, run

    @property
    def status(self) -> str:
        return WORDS[self.result.status.name]

    @property
    def value(self) -> str:
        """What the task returned, in words."""
        counts: dict[str, int] = self.result.return_value
        return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "no events"

    @property
    def error(self) -> str:
        """The last line of the last error."""
        errors = self.result.errors
        return errors[-1].traceback.rstrip().rpartition("\n")[2] if errors else ""


def enqueue_once(form: ReportForm) -> Any:
    """Enqueue a report, once however often its form is sent: the order and the task are written together, or neither.

    Returns its result, None where the form was sent before.
    """
    now, seconds = timezone.now(), form.cleaned_data["wait"]
    later = now + timedelta(seconds=seconds) if seconds else None
    with transaction.atomic():
        ReportOrder.objects.filter(ordered_at__lt=now - timedelta(days=1)).delete()
        token = form.cleaned_data["token"]
        _, is_new = ReportOrder.objects.get_or_create(token=token, defaults={"ordered_at": now})
        return count_by_week.using(run_after=later).enqueue(form.cleaned_data["machine"]) if is_new else None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def reports(request: HttpRequest) -> HttpResponse:
    """Enqueue a report, and show how the last ones stand."""
    ids: list[str] = request.session.get("reports", [])
    form = ReportForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if (result := enqueue_once(form)) is not None:
            request.session["reports"] = [result.id, *ids][:KEPT]
        return redirect("reports")
    shown = [Report(count_by_week.get_result(id), run) for id in ids if (run := find_run(id)) is not None]
    is_going = any(not one.result.is_finished for one in shown)
    return render(
        request, "alarms/reports.html", {"form": form, "reports": shown, "is_going": is_going, "now": timezone.now()}
    )
