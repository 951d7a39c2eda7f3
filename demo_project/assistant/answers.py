"""What the assistant of the demo says: it counts events, whatever it is asked."""

from datetime import datetime, timedelta

from django.db.models import Count

from demo_project.alarms.models import Event


def answer_to(prompt: str, now: datetime) -> str:
    """Return an answer of one sentence."""
    severity = next((one for one in Event.Severity if one.value in prompt.lower()), None)
    events = Event.objects.filter(occurred_at__gte=now - timedelta(days=1))
    if severity is not None:
        events = events.filter(severity=severity)
    by_source = list(events.order_by().values_list("source").annotate(number=Count("pk")).order_by("-number", "source"))
    if not by_source:
        return "Nothing happened in the last 24 hours."
    kind = f"{severity.value} events" if severity else "events"
    total, (source, most) = sum(number for _, number in by_source), by_source[0]
    return f"{total} {kind} in the last 24 hours, {most} of them from the {source}."
