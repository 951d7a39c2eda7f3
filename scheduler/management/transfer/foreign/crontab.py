"""crontab: a file of cron, that of a user or with `--system` one of /etc/cron.d. No command of it is carried out."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from django.conf import settings

from scheduler.exceptions import InvalidSchedule
from scheduler.management.transfer.entry import Entry
from scheduler.management.transfer.foreign.names import job_name
from scheduler.management.transfer.sources import Asked, Found, text_of
from scheduler.safetext import MASK, counted, is_secret, masked, shown, told, without_secrets
from scheduler.schedules import Cron

VARIABLE = re.compile(r"""\s*(?P<name>[A-Za-z_]\w*|"[^"]*"|'[^']*')\s*=\s*(?P<value>.*?)\s*""", re.ASCII)
ZONE = ("CRON_TZ", "TZ")
FIELDS = 5
INPUT = re.compile(r"(?<!\\)%")
"""What ends the command: the rest is its input, with `%` for the end of a line."""
DJANGO = re.compile(r"(?:^|[\s/])(manage\.py\s+[^;&|<>]*[^;&|<>\s])")
"""The part of a command that is a command of Django, without what follows it in the shell."""
LONGEST_NAME = 100


def read(asked: Asked) -> Found:
    """Read the lines of a file; raises InvalidOption when it cannot be read."""
    zone, entries, notes = asked.timezone, [], []
    for number, line in enumerate(text_of(asked.file).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if variable := VARIABLE.fullmatch(line):
            name, value = (variable[part].strip("\"'") for part in ("name", "value"))
            zone = value if name == ZONE[0] else zone
            notes.append(f"line {number}: {_told_variable(name, value)}")
        else:
            entries.append(_entry(f"line {number}", line.strip(), zone, is_system=asked.system))
    if any(one.schedule and one.schedule.follows_timezone for one in entries):
        notes.append(f"Times are those of TIME_ZONE, {settings.TIME_ZONE}; say --timezone if the host's are others.")
    return list(_named_apart(entries)), notes


def _told_variable(name: str, value: str) -> str:
    if name == ZONE[0]:
        return f"{name}={value} is the time zone of the lines below"
    more = ", and whether cron follows it depends on the cron: say --timezone" if name in ZONE else ""
    return (
        f"the variable {name}={MASK if is_secret(name) else without_secrets(masked(value))} is not carried over{more}"
    )


def _entry(place: str, line: str, zone: str, *, is_system: bool) -> Entry:
    expression, rest = _split(line.removeprefix("-") if is_system else line)
    user, rest = _first_word(rest) if is_system else ("", rest)
    command, *given = INPUT.split(rest)
    command = command.replace(r"\%", "%").strip()
    hidden = without_secrets(masked(command))
    django = DJANGO.search(command)
    name, _ = job_name(without_secrets(masked(django[1])) if django else hidden)
    found = Entry(
        place=place,
        name=name[:LONGEST_NAME].strip(),
        task=command,
        aliases=(" ".join(django[1].split()),) if django else (),
        mapped_only=True,
        notes=tuple(_notes(hidden, user, given)),
    )
    if not command:
        return replace(found, refused=f"It has no command: {shown(without_secrets(masked(line)))}.")
    try:
        return replace(found, schedule=Cron(expression, timezone=zone or None))
    except InvalidSchedule as error:
        return replace(found, refused=told(error))


def _split(line: str) -> tuple[str, str]:
    """Return the time and the rest of a line."""
    count = 1 if line.startswith("@") else FIELDS
    parts = line.split(None, count)
    return " ".join(parts[:count]), parts[count] if len(parts) > count else ""


def _first_word(text: str) -> tuple[str, str]:
    word, _, rest = text.replace("\t", " ", 1).partition(" ")
    return word, rest.strip()


def _notes(command: str, user: str, given: list[str]) -> Iterator[str]:
    yield f"the command was {command}"
    if user:
        yield f"it ran as {user}; a task runs in the web process"
    if given:
        yield f"it was given {counted(len(given), 'line')} of input after %, and a task has none"


def _named_apart(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries, those of one command with their lines in their names."""
    names = Counter(entry.name for entry in entries)
    for entry in entries:
        yield replace(entry, name=f"{entry.name} ({entry.place})") if names[entry.name] > 1 else entry
