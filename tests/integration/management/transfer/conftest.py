"""Three tasks, the commands, and what they say."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.db import shared_time
from scheduler.registry import register, registry
from tests.factories import T0


@pytest.fixture(autouse=True)
def at_t0(monkeypatch):
    """Every clock, that of the database too, says T0."""
    monkeypatch.setattr(SYSTEM_CLOCK, "now", lambda: T0)
    monkeypatch.setattr(shared_time, "CLOCK_QUERIES", {})


@pytest.fixture(autouse=True)
def tasks():
    def digest(days: int = 1, to: str = "all") -> None:
        """Sends the digest."""

    def nothing() -> None:
        """Does nothing."""

    register("digest")(digest)
    register("nothing")(nothing)
    return registry


@pytest.fixture
def run():
    """Call a command, and return what it prints."""

    def call(*arguments):
        out = StringIO()
        call_command(*map(str, arguments), stdout=out, stderr=StringIO())
        return out.getvalue()

    return call


@pytest.fixture
def refusal(run):
    """Call a command that is asked for wrongly, and return what it says."""

    def call(*arguments, code=2):
        with pytest.raises(CommandError) as raised:
            run(*arguments)
        assert raised.value.returncode == code
        return str(raised.value)

    return call


@pytest.fixture
def report(run):
    """Import, and return the report for programs."""
    return lambda *arguments: json.loads(run("import_schedules", "--json", *arguments))


@pytest.fixture
def outcomes(report):
    """Import, and return the outcome of each name."""
    return lambda *arguments: {one["name"]: one["outcome"] for one in report(*arguments)["schedules"]}
