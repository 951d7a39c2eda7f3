"""Taken groups: how a process is told which groups it takes, and what is said of a name that nothing has."""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import DatabaseError

from scheduler.arguments import checked_group
from scheduler.engine import control
from scheduler.exceptions import InvalidOption
from scheduler.models import TakenGroups
from scheduler.safetext import shown

QUEUE = "queue:"
"""How the name of the group begins that stands for a queue of Django Tasks."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options that choose groups."""
    names: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "NAME"}
    parser.add_argument("--only-group", help="take the jobs of these groups only", **names)
    parser.add_argument("--queues", help="take these queues of Django Tasks only: the groups queue:NAME", **names)
    parser.add_argument("--except-group", help="take the jobs of all groups but these", **names)


def taken_groups(options: Mapping[str, Any]) -> TakenGroups:
    """Return the choice that the options make; raises InvalidOption for names that no group can have."""
    only = [_checked("--only-group", name) for name in options["only_group"]]
    only += [f"{QUEUE}{_checked('--queues', name)}" for name in options["queues"]]
    but = [_checked("--except-group", name) for name in options["except_group"]]
    if only and but:
        raise InvalidOption("--except-group chooses among all groups; leave it out beside --only-group and --queues.")
    return TakenGroups(frozenset(only), frozenset(but))


def _checked(option: str, name: str) -> str:
    if not name.strip():
        text = "jobs without a group are taken by a process with --except-group, or with none of these options"
        raise InvalidOption(f"{option} is {shown(name)}; {text}.")
    return checked_group(name)


def warnings_of(takes: TakenGroups) -> Iterator[str]:
    """Yield a line for each name that no job, no task and no setting has, with near ones. Asks the database once."""
    if takes.are_all:
        return
    known = _known_groups()
    for name in sorted(takes.only | takes.but):
        if name not in known:
            yield control.unknown_group(name, known)


def _known_groups() -> set[str]:
    try:
        return control.known_groups()
    except DatabaseError:  # its tables may not be there yet
        return control.known_groups(stored=False)
