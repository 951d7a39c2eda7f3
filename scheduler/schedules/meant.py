"""What people mean by a line that is no schedule, such as “every day at 3am”."""

import re

LONGEST = 100
"""Characters of a line that is looked at; a longer one is no slip."""
CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s*(am|pm|o'clock)?$")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY = re.compile(rf"\b({'|'.join(DAYS)})(?:day|sday|nesday|rsday|urday)?s?\b")
NAMED = {"noon": "12:00", "midnight": "00:00"}


def meant(text: str) -> str:
    """Return the line that was probably meant, as `parse_text` reads it; empty when there is none."""
    line = " ".join(text.lower().split()) if len(text) <= LONGEST else ""
    at = _clock(line)
    if not at or re.search(r"hour|minute|second", line):
        return ""
    if day := DAY.findall(line):
        return f"weekly on {','.join(day)} at {at}"
    if re.search(r"\bweek ?days?\b", line):
        return f"weekly on {','.join(DAYS[:5])} at {at}"
    if "month" in line:
        return f"monthly on {'last day' if 'last' in line else 1} at {at}"
    if re.search(r"\b(every ?day|daily|each day|at)\b", line):
        return f"daily at {at}"
    return ""


def _clock(line: str) -> str:
    for name, clock in NAMED.items():
        if line.endswith(name):
            return clock
    match = CLOCK.search(line)
    if match is None:
        return ""
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    if half in ("am", "pm") and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else ""
