"""P1, P2: what a task returns or raises is stored, bounded and readable, whatever it is."""

import threading
from pathlib import Path

import pytest

from scheduler.models import Job, RunLog, Status
from tests.factories import make_job
from tests.integration.rules.play import Play

pytestmark = pytest.mark.django_db

LIMIT = 64_000


@pytest.fixture
def row(known, clock):
    """Run a task once; return its row as the database has it."""

    def run(task):
        play = Play(known, clock, task)
        play.close()
        job = make_job()
        play.call(60)
        return RunLog.objects.get(job=job)

    return run


def itself():
    endless = []
    endless.append(endless)
    return endless


class Shy:
    def __repr__(self):
        raise RuntimeError("no")


def deep():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    return nested


RESULTS = {
    "lock": threading.Lock,
    "generator": lambda: (n for n in range(3)),
    "file": lambda: Path(__file__).open(),  # noqa: SIM115
    "set": lambda: {1, 2},
    "NaN": lambda: float("nan"),
    "infinity in a list": lambda: [float("inf")],
    "tuple keys": lambda: {(1, 2): 3},
    "itself": itself,
    "very deep": deep,
    "50 MB": lambda: "x" * (50 * 1024 * 1024),
    "50 MB of bytes": lambda: b"x" * (50 * 1024 * 1024),
    "model instance": lambda: Job(name="x"),
    "repr raises": Shy,
    "list of those": lambda: [Shy()],
    "NUL and surrogate": lambda: "\x00 \udce9 😀",
    "class": lambda: Shy,
    "exception": lambda: ValueError("\x00"),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_any_result_is_a_success_and_a_bounded_text_P1(row, name):
    run = row(RESULTS[name])
    assert run.status == Status.SUCCEEDED, run.error
    assert 0 < len(run.result) <= LIMIT
    assert ("cut:" in run.result) == name.startswith("50 MB")
    assert "\x00" not in run.result


def raises(*arguments, kind=ValueError):
    def task():
        raise kind(*arguments)

    return task


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def chain():
    try:
        raise KeyError("\x00 first")
    except KeyError as error:
        raise ValueError("second") from error


ERRORS = {
    "NUL, surrogate, emoji and a megabyte": (raises("a\x00b \udce9 😀 " + "x" * 10**6), "xxx"),
    "str raises": (raises(kind=Wordless), "Wordless"),
    "chain": (chain, "second"),
    "group": (lambda: raises("g", [ValueError("\udce9")], kind=ExceptionGroup)(), "\\udce9"),
    "not even a text": (raises(object()), "object"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_any_error_is_a_failure_with_a_readable_bounded_text_P2(row, name):
    task, tail = ERRORS[name]
    run = row(task)
    assert run.status == Status.FAILED
    assert 0 < len(run.error) <= LIMIT
    assert tail in run.error[-2000:], "the tail of the traceback says most"
    assert "\x00" not in run.error


def test_the_limit_is_a_setting_and_counts_characters_not_bytes_P2(row, settings):
    settings.SCHEDULER_MAX_LOG_CHARS = 1000
    run = row(lambda: "😀" * 5000)
    assert 900 < len(run.result) <= 1000
    assert run.result.startswith("😀😀")
