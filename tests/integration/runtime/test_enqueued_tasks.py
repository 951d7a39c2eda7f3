"""The dispatcher and tasks that are enqueued here: one is looked for at once, those of a flow together."""

import pytest

from scheduler.clock import distinct
from scheduler.engine.control.enqueue import Carrier, Waiting, enqueue
from scheduler.executors import stream
from scheduler.models import RunLog, Status
from scheduler.models.carriers import ONE_OFFS
from scheduler.policy import Policy
from scheduler.runtime import dispatcher as module
from tests.factories import at, make_job

pytestmark = pytest.mark.django_db
CARRIER = Carrier(name="once: task", task="task", source=ONE_OFFS, policy=Policy(), group="queue:default")


@pytest.fixture
def woken(parts, monkeypatch):
    """Return how often the dispatcher was woken, as a list that grows."""
    monkeypatch.setattr(distinct, "_last", at(-60))
    found = []
    parts.dispatcher._wake = lambda: found.append(1)
    parts.pool.free = 100
    while parts.dispatcher.step() == 0:
        pass
    return found


def put(parts, count):
    for _ in range(count):
        enqueue(CARRIER, Waiting(kwargs={}), parts.clock.now())
        parts.dispatcher.enqueued()
    parts.manual.advance(0.001)  # each has a slot of its own, a microsecond after the last


def test_a_single_task_is_looked_for_at_once(parts, woken):
    put(parts, 1)
    assert woken == [1]
    assert parts.dispatcher.step() == stream.A_MOMENT, "it may start before the next pass"
    put(parts, 1)
    assert woken == [1, 1], "which does not keep the next one waiting"
    parts.dispatcher.step()
    assert parts.dispatcher.step() > 1, "and nothing more is looked for"


def test_tasks_that_keep_coming_are_gathered_although_each_pass_finds_few(parts, woken):
    waits = []
    for _ in range(6):
        put(parts, 3)
        waits.append(parts.dispatcher.step())
    assert waits == [stream.A_MOMENT] * 5 + [stream.GATHER_SECONDS]
    del woken[:]
    put(parts, 3)
    assert woken == []
    parts.manual.advance(1)
    assert parts.dispatcher.step() == stream.A_MOMENT, "those of a second ago count no more"


def test_while_tasks_stream_in_slow_passes_leave_most_of_the_time_to_the_tasks(parts, woken, monkeypatch):
    real = module.tick

    def slow(*args, **options):
        parts.manual.advance(seconds)
        return real(*args, **options)

    monkeypatch.setattr(module, "tick", slow)
    waits = []
    for seconds in (0.0001, 0.003, 0.2):  # noqa: B007
        put(parts, 10)
        waits.append(parts.dispatcher.step())
    assert waits == [stream.GATHER_SECONDS, pytest.approx(0.003 * stream.PASS_TO_GATHER), stream.LONGEST_GATHER]


def test_of_a_flow_of_tasks_those_of_a_moment_are_claimed_by_one_pass(parts, woken):
    put(parts, 10)
    assert parts.dispatcher.step() == stream.GATHER_SECONDS
    del woken[:]
    put(parts, 10)
    assert woken == []
    assert parts.dispatcher.step() == stream.GATHER_SECONDS
    assert RunLog.objects.filter(status=Status.RUNNING).count() == 20
    assert parts.dispatcher.step() > 1, "the flow has ended"
    parts.manual.advance(1)
    put(parts, 1)
    assert woken == [1]


def test_a_task_that_comes_during_the_last_pass_of_a_flow_is_not_left_until_the_next_poll_I17(
    parts, woken, monkeypatch
):
    put(parts, 10)
    parts.dispatcher.step()
    real = module.tick

    def slow(*args, **options):
        passed = real(*args, **options)
        put(parts, 1)
        return passed

    monkeypatch.setattr(module, "tick", slow)
    assert parts.dispatcher.step() == 0.0, "the pass had looked by then"
    monkeypatch.undo()
    parts.dispatcher.step()
    assert RunLog.objects.filter(status=Status.RUNNING).count() == 11


def test_ends_in_a_queue_without_a_limit_are_no_reason_to_look_again(parts, woken, settings):
    job = make_job(columns={"group": "queue:default"})
    limited = make_job("other", columns={"group": "few"})
    settings.SCHEDULER_GROUPS = {"few": 1}
    parts.dispatcher.settled(module.Settled(finished=[RunLog.of(job)]))
    assert woken == []
    parts.dispatcher.settled(module.Settled(finished=[RunLog.of(limited)]))
    assert woken == [1]
