"""Message: what is sent at once, one event or several, as texts and as data."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from django.template import Context, Engine
from django.template.loader import render_to_string
from django.utils import translation

from scheduler.safetext import visible

LISTED = 20
"""So many events are told in full by a text; the others are named or counted."""
NAMED = 500
LONGEST_SUBJECT = 150
TEMPLATES = "scheduler/notifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One notice as a channel tells it. Texts are in the language of the channel, bounded, of one line each.

    `title` says what happened, `cause` why, `changes` what was changed since the last success, `times` when.
    `severity` is alert, warning or recovery.
    """

    id: int
    event: str
    severity: str
    job: str
    at: str
    title: str
    times: str = ""
    cause: str = ""
    error: str = ""
    changes: Sequence[str] = ()
    run: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return asdict(self) | {"changes": list(self.changes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Events that are sent at once, the oldest first. Its `id` stays while it is tried again unless more join it."""

    events: Sequence[Event]
    language: str
    is_test: bool = False
    id: str = field(init=False)

    def __post_init__(self) -> None:
        ids = [event.id for event in self.events]
        object.__setattr__(self, "id", f"{ids[0]}-{ids[-1]}" if len(ids) > 1 else str(ids[0]))

    @property
    def subject(self) -> str:
        """One line of at most 150 characters."""
        line = " ".join(visible(" ".join(self._rendered("subject.txt").split())).split())
        return line if len(line) <= LONGEST_SUBJECT else line[: LONGEST_SUBJECT - 1] + "…"

    @property
    def body(self) -> str:
        """The text of a mail."""
        return visible(self._rendered("body.txt").strip() + "\n", lines=True)

    def text_for_slack(self) -> str:
        """The text of a chat, in the markup of Slack, where `&`, `<` and `>` are escaped."""
        return visible(self._rendered("slack.txt", escape_for_slack).strip(), lines=True)

    def _rendered(self, template: str, escape: Any = str) -> str:
        events = [
            {name: escape(value) if isinstance(value, str) else value for name, value in event.to_dict().items()}
            | {"changes": [escape(change) for change in event.changes]}
            for event in self.events
        ]
        context = {
            "events": events[:LISTED],
            "first": events[0],
            "count": len(events),
            "named": ", ".join(dict.fromkeys(event["job"] for event in events[LISTED : LISTED + NAMED])),
            "more": max(0, len(events) - LISTED),
            "is_test": self.is_test,
        }
        with translation.override(self.language):
            try:
                return render_to_string(f"{TEMPLATES}/{template}", context)
            except Exception:  # a template of the project may raise anything, and must keep nothing back
                return _own_templates().get_template(f"{TEMPLATES}/{template}").render(Context(context))


@cache
def _own_templates() -> Engine:
    """The templates of this app, for projects that cannot render theirs."""
    return Engine(dirs=[str(Path(__file__).parents[1] / "templates")], libraries={"i18n": "django.templatetags.i18n"})


def escape_for_slack(text: str) -> str:
    """Return a text in which Slack sees no markup of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
