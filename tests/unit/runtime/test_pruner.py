"""The housekeeper does one thing a step."""

from types import SimpleNamespace

from scheduler.clock import ManualClock
from scheduler.runtime import pruner
from scheduler.runtime.pruner import BETWEEN_LOOKS, BETWEEN_ROUNDS, Housekeeper
from tests.factories import T0


def test_events_are_pruned_once_a_round_in_a_step_of_their_own(monkeypatch):
    done, clock = [], ManualClock(T0)
    cursors = iter([7, None] * 2)
    monkeypatch.setattr(
        pruner, "prune_some", lambda *_: (SimpleNamespace(total=0), done.append("runs") or next(cursors))
    )
    monkeypatch.setattr(pruner, "prune_events", lambda *_: done.append("events"))
    monkeypatch.setattr(pruner, "forget_deleted", lambda *_: done.append("watches"))
    monkeypatch.setattr(pruner, "forget_keys", lambda *_: done.append("keys"))
    monkeypatch.setattr(pruner, "measure_some", lambda *_: 0)
    monkeypatch.setattr(pruner, "compare_some", lambda *_: 0)
    monkeypatch.setattr(pruner, "forget_days", lambda *_: done.append("days"))
    monkeypatch.setattr(pruner, "forget_run_keys", lambda *_: 0)
    member = SimpleNamespace(may_claim=lambda: True)
    keeper = Housekeeper(SimpleNamespace(using="default"), member, clock)
    for _ in range(4):
        clock.advance(BETWEEN_LOOKS)
        keeper.step()
    assert done == ["runs", "runs", "events", "watches", "days", "keys"]
    clock.advance(BETWEEN_ROUNDS)
    keeper.step()
    assert done == ["runs", "runs", "events", "watches", "days", "keys", "runs"]
