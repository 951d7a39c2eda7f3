"""Three jobs that hand prompts to the assistant, one at a time: SCHEDULER_GROUPS has a limit of 1 for their group."""

from django.conf import settings

from scheduler import DailyAt, Every, register
from scheduler.contrib.sessions import send_prompt

GROUP, URL = "sessions", settings.ASSISTANT_URL

register(
    "morning_brief",
    schedule=DailyAt(hour=7),
    group=GROUP,
    description="Ask for a summary of the night, in a session of its own that knows the earlier ones.",
    kwargs={
        "url": URL,
        "prompt": "It is {{ date }}. What happened since {{ last_run|default:'yesterday' }}?",
        "model": "careful",
    },
)(send_prompt)

register(
    "ask_for_critical_events",
    schedule=Every(minutes=2),
    group=GROUP,
    description="Ask for critical events, with the time and the result of the last question in the prompt.",
    kwargs={
        "url": URL,
        "prompt": "Critical events?{% if lastRun %} Asked at {{ lastRun|time:'H:i' }}: {{ lastResult }}.{% endif %}",
    },
)(send_prompt)

register(
    "look_for_warnings",
    schedule=Every(minutes=5),
    group=GROUP,
    description="Ask in a session that is only for this run, and is deleted after it.",
    kwargs={"url": URL, "prompt": "Which machine has the most warnings?", "persist_session": False},
)(send_prompt)
