"""A fault counts only when it struck: one that hits nothing proves nothing, and no summary must say that it did."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import __main__ as faults_command
from tests.faults import harm_database, harm_messages, harm_plans, harm_processes
from tests.faults.__main__ import Tally, play_alone, summary
from tests.faults.databases import Sqlite
from tests.faults.jobs import STEADY
from tests.faults.processes import Runner
from tests.faults.proxy import Proxy
from tests.faults.rounds import Fault, Round


class NeverLocked(Sqlite):
    """A database in which nothing can be harmed."""

    def hold_lock(self, seconds: float) -> float:
        raise RuntimeError("no lock was ever taken")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Round]:
    """A rig without any process alive or any connection, in which no time passes."""
    for module in (harm_database, harm_messages, harm_plans, harm_processes):
        monkeypatch.setattr(module, "pause", lambda seconds: None)
        monkeypatch.setattr(module, "wait_for", lambda condition, seconds, every=0.0: condition())
    monkeypatch.setattr(Runner, "_start", lambda self: None)
    database = NeverLocked()
    database.create()
    (tmp_path / "journal.jsonl").touch()
    runners = [Runner(index, tmp_path, "", {"order": {}}) for index in range(3)]
    proxies = [Proxy(1, index) for index in range(3)]
    specs = {spec.name: spec for spec in STEADY}
    yield Round(database, Random(0), tmp_path, runners=runners, proxies=proxies, specs=specs)
    for proxy in proxies:
        proxy.close()
    database.drop()


FAULTS = {
    "sessions": harm_database.sessions,
    "lock": harm_database.lock,
    "drop-commit": harm_database.drop_commit,
    "stall": harm_database.stall,
    "delay": harm_database.delay,
    "server-down": harm_database.server_down,
    "cut": harm_database.cut,
    "disk-full": harm_database.disk_full,
    "kill": harm_processes.kill,
    "kill-all": harm_processes.kill_all,
    "kill-handled": harm_processes.at_point("handled", "kill"),
    "freeze-handled": harm_processes.at_point("handled", "freeze"),
    "rescue": harm_processes.in_rescue("kill"),
    "freeze-rescue": harm_processes.in_rescue("freeze"),
    "freeze": harm_processes.freeze,
    "poison": harm_processes.poison,
    "messages": harm_messages.messages,
    "no-threads": harm_processes.no_threads,
    "no-descriptors": harm_processes.no_descriptors,
    "step+7200": harm_plans.clock(7200, step=True),
    "autumn": harm_plans.autumn,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_that_hits_nothing_has_not_struck(fault: Fault, rig: Round) -> None:
    assert not fault(rig, Random(1))
    assert not +rig.used


@pytest.mark.parametrize(("struck", "is_told"), [({"kill": 2}, True), ({"kill": 2, "cut": 1}, False)])
def test_a_fault_that_was_dealt_and_never_struck_is_named(struck: dict[str, int], is_told: bool) -> None:
    tally = Tally()
    outcome: Any = SimpleNamespace(violations=[], used=struck, evidence=SimpleNamespace(lines=[]), recovered=1.0)
    for used in ({}, struck):
        outcome.used = {"kill": 0, "cut": 0} | used
        tally.add("1:0", ["kill", "cut"], outcome)
    assert tally.harmless == (["cut"] if is_told else [])
    assert ("never struck: cut" in summary("sqlite", "1", tally)) == is_told


@pytest.mark.parametrize(
    ("strikes", "played"), [([1], [["cut"]]), ([0, 1], [["cut"], ["cut"]]), ([0, 0, 1], [["cut"], ["cut"]])]
)
def test_a_fault_that_has_not_struck_is_dealt_again_alone(
    monkeypatch: pytest.MonkeyPatch, strikes: list[int], played: list[list[str]]
) -> None:
    outcome: Any = SimpleNamespace(violations=[], used={"kill": 1}, evidence=SimpleNamespace(lines=[]), recovered=1.0)
    tally, dealt = Tally(), []
    tally.add("1:0", ["kill", "cut"], SimpleNamespace(**{**vars(outcome), "used": {"kill": 1, "cut": 0}}))  # type: ignore[arg-type]

    def play(_database: Any, seed: str, number: int, names: list[str], tally: Tally, _mutant: str) -> None:
        dealt.append(names)
        outcome.used = {"cut": strikes[len(dealt) - 1]}
        tally.add(f"{seed}:{number}", names, outcome)

    monkeypatch.setattr(faults_command, "play", play)
    play_alone(None, "1", 20, tally, "")  # type: ignore[arg-type]
    assert dealt == played
    assert tally.harmless == ([] if strikes[len(dealt) - 1] else ["cut"])
