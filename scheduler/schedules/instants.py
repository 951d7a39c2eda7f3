"""Instants in what programs read."""

from datetime import UTC, datetime


def instant_text(at: datetime) -> str:
    """An instant as RFC 3339 has it: in UTC with a Z, to the microsecond, such as `2026-03-02T12:00:00Z`.

    A wall time, which is naive, has no offset.
    """
    return at.isoformat() if at.tzinfo is None else f"{at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
