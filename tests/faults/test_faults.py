"""A few rounds of the fault suite in the ordinary tests; `python -m tests.faults` plays any number."""

import os
import signal

import pytest

from tests.faults.databases import answers, fresh
from tests.faults.faults import chosen
from tests.faults.rounds import run_round
from tests.faults.scenes import every, scene
from tests.faults.timing import pause

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

ROUNDS = [
    ("sqlite", ["kill-handled", "freeze"]),
    ("sqlite", ["lock", "kill"]),
    pytest.param("postgresql", ["drop-commit", "rescue"], marks=pytest.mark.postgresql),
    pytest.param("mariadb", ["sessions", "kill-claim-after-commit"], marks=pytest.mark.mariadb),
]


@pytest.mark.parametrize(("kind", "faults"), ROUNDS)
def test_every_promise_is_kept_under_faults(kind: str, faults: list[str]) -> None:
    if not answers(kind):
        pytest.skip(f"no {kind} server answers on 127.0.0.1, or its driver is missing")
    with fresh(kind) as database:
        outcome = run_round(database, "in the tests", chosen(database, faults))
    assert not outcome.violations, "\n".join(map(str, outcome.violations)) + "\n" + outcome.logs
    assert [name for name in faults if not outcome.used[name]] == [], "did not strike"


def test_a_process_that_is_asked_to_stop_while_it_is_frozen_stops_when_it_thaws_I18() -> None:
    with scene("sqlite", {"tick": every(1)}) as play:
        (runner,) = play.runners
        play.start()
        play.wait(lambda: play.ends("tick"), what="it runs")
        runner.freeze()
        pause(0.5)
        os.kill(runner.pid, signal.SIGTERM)
        runner.thaw()
        play.wait(lambda: not runner.is_alive(), seconds=10, what="it has stopped")
        assert play.database.sample().instances == {}
