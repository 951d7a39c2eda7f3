"""A worker asks for the slot of a run before it calls the task. Whatever is no yes is a no."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from scheduler.engine.control import backfill, run_now
from scheduler.executors.live_run import Living
from scheduler.models import Job, RunLog, Status
from scheduler.registry import registry
from scheduler.schedules import Once
from tests.factories import at, claim_at, claim_one, finish, make_job
from tests.integration.locks.host import LEASE, MINUTE, Host, living, row

pytestmark = pytest.mark.django_db


class TestAsking:
    def test_a_slot_that_is_free_is_ours_and_the_task_knows_the_fence(self, host, job):
        assert host.begin(60).context.lock_fence == 1
        assert host.seconds_left() == LEASE

    def test_a_slot_of_another_host_is_skipped_and_the_ledger_says_where_it_runs(self, host, job):
        host.taken_elsewhere()
        one = host.claim()
        host.write(one, host.locks.refusal(one))
        run = row(one)
        assert (run.status, run.reason, run.started_at) == (Status.SKIPPED, "lock: web-2:7 runs it", None)
        assert (run.job.skips, run.job.last_run_at, run.job.next_run_at) == (1, None, at(120))

    @pytest.mark.usefixtures("job")
    def test_a_run_by_hand_asks_nobody(self, host):
        host.lock.away = True
        one = self.promised(host, lambda: run_now("job"))
        assert (host.locks.refusal(one), host.lock.asked, one.context.lock_fence) == (None, 0, None)

    def test_a_backfill_asks_for_its_slots(self, host, job):
        finish(host.engine, claim_one(host.engine, at(180)), at(180))
        host.taken_elsewhere(at(120))
        Job.objects.update(wake_at=None)  # a slot of its own would go first
        one = self.promised(host, lambda: backfill("job", at(120), at(120), only="all"))
        assert host.locks.refusal(one).reason == "lock: web-2:7 runs it"

    def promised(self, host, promise) -> Living:
        registry.add(host.engine.registry.get("task"))
        try:
            promise()
        finally:
            registry.remove("task")
        return living(claim_at(host.engine, RunLog.objects.waiting().get().due_at).runs[0])

    @pytest.mark.parametrize("status", [Status.FAILED, Status.LOST, Status.POSTPONED])
    def test_a_further_attempt_of_the_same_database_gets_what_the_first_one_holds(self, status):
        host = Host()
        make_job(retries=1)
        first = host.begin()
        host.end(first, status, **({"postponed_by": timedelta(seconds=5)} if status == Status.POSTPONED else {}))
        host.locks.step()
        host.start_again()
        second = host.claim(95)
        assert second.claimed.run.attempt == 2
        assert host.locks.refusal(second) is None
        assert second.context.lock_fence == 2

    def test_the_answer_that_comes_when_the_lease_is_over_is_no_yes_T1(self, host, job, monkeypatch):
        real = host.lock.take

        def take(bid, seconds):
            answer = real(bid, seconds)
            host.clock.advance(LEASE)
            return answer

        monkeypatch.setattr(host.lock, "take", take)
        assert host.locks.refusal(host.claim()).status == Status.POSTPONED


class TestNobodyAnswers:
    """T2: an error is a no. The run waits for the lock as long as its grace lasts."""

    def play(self, host: Host) -> list[tuple[str, float]]:
        """Start each attempt at its time until the slot has ended; return statuses, and seconds after the slot."""
        one, seen = host.claim(), []
        while True:
            outcome = host.locks.refusal(one)
            seen.append((outcome.status, (host.clock.now() - MINUTE).total_seconds()))
            host.write(one, outcome)
            promised = RunLog.objects.waiting().filter(scheduled_for=MINUTE).first()
            if promised is None:
                return seen
            host.clock.move_to(promised.due_at)
            one = next(living(one) for one in claim_at(host.engine, promised.due_at).runs if one.run.pk == promised.pk)

    @pytest.fixture
    def job(self, host):
        return make_job(schedule=Once(MINUTE), grace=60)

    def test_it_is_put_off_by_two_to_fifteen_seconds_and_skipped_at_the_end_of_its_grace_T2(self, host, job):
        host.lock.away = True
        seen = self.play(host)
        assert [after for _, after in seen] == [0, 2, 4, 8, 16, 31, 46]
        assert [status for status, _ in seen] == [Status.POSTPONED] * 6 + [Status.SKIPPED]
        first, *_, last = RunLog.objects.order_by("attempt")
        assert (first.reason, first.started_at) == ("lock: it cannot be asked: It is away.", None)
        assert last.reason == "lock: it cannot be asked within its grace: It is away."
        job.refresh_from_db()
        assert (job.last_run_at, job.skips, job.consecutive_failures) == (None, 1, 0)

    def test_it_runs_when_the_lock_has_been_back_for_two_renewals(self, host, job):
        self.put_off(host)
        host.lock.away = False
        for second in (62, 64, 68, 76):
            self.put_off(host, second)
        assert RunLog.objects.get(attempt=5).reason == "lock: it cannot be asked: hosts tell first what they have run"
        assert host.begin(91).claimed.run.attempt == 6

    def test_a_host_that_has_run_it_tells_before_another_one_may_have_it_I1(self, host, job):
        self.put_off(host)
        host.lock.away = False
        self.put_off(host, 62)
        host.taken_elsewhere()  # told late: the lease ran out while the lock was away
        for second in (64, 68, 76):
            self.put_off(host, second)
        assert host.locks.refusal(host.claim(91)).reason == "lock: web-2:7 runs it"

    def test_an_outage_begins_the_wait_again(self, host, job):
        self.put_off(host)
        host.lock.away = False
        self.put_off(host, 62)
        host.lock.away = True
        self.put_off(host, 64)
        host.lock.away = False
        for second in (68, 76):
            self.put_off(host, second)
        assert host.begin(91).claimed.run.attempt == 6

    def test_at_the_end_of_its_grace_it_runs_rather_than_never(self, host, job):
        for second in (60, 62, 64, 68, 76, 91):
            self.put_off(host, second)
        host.lock.away = False
        assert host.begin(106).claimed.run.attempt == 7

    def put_off(self, host, second=60) -> None:
        host.lock.away = host.lock.away or second == 60
        one = host.claim(second)
        outcome = host.locks.refusal(one)
        assert outcome.status == Status.POSTPONED
        host.write(one, outcome)

    def test_a_database_that_cannot_say_who_asked_before_is_no_yes_either(self, host, job, monkeypatch):
        host.lock.away = True
        one = host.claim()
        host.write(one, host.locks.refusal(one))
        host.lock.away = False
        two = host.claim(62)
        with monkeypatch.context() as away:
            away.setattr(host.locks, "_earlier_attempts", lambda _: (_ for _ in ()).throw(OperationalError("gone")))
            assert host.locks.refusal(two).status == Status.POSTPONED

    def test_nobody_asks_again_for_a_second_so_that_no_worker_hangs(self, host):
        for name in ("a", "b", "c"):
            make_job(name)
        host.lock.away = True
        host.clock.move_to(MINUTE)
        for claimed in claim_at(host.engine, MINUTE).runs:
            assert host.locks.refusal(living(claimed)).status == Status.POSTPONED
        assert host.lock.asked == 1
        host.clock.advance(1)
        host.locks.refusal(living(claimed))
        assert host.lock.asked == 2

    def test_the_log_says_it_every_thirty_seconds_and_health_for_a_minute(self, host, job, caplog):
        host.lock.away = True
        one = host.claim()
        for _ in range(45):
            host.locks.refusal(one)
            host.clock.advance(1)
        said = [record for record in caplog.records if getattr(record, "action", "") == "lock_unavailable"]
        assert [record.levelname for record in said] == ["WARNING"] * 2
        assert host.locks.trouble() == "It is away."
        host.clock.advance(60)
        assert host.locks.trouble() == ""

    def test_the_first_yes_ends_the_trouble(self, host, job):
        host.lock.away = True
        one = host.claim()
        host.locks.refusal(one)
        host.lock.away = False
        host.clock.advance(1)
        host.locks.refusal(one)
        assert host.locks.trouble() == ""


def test_health_is_degraded_while_the_lock_cannot_be_asked_N4(host, job, monkeypatch):
    from scheduler.health import get_scheduler_status
    from scheduler.runtime import current
    from scheduler.runtime.runner import Runner

    runner = Runner("test")
    runner.locks = SimpleNamespace(trouble=lambda: "it is away")
    monkeypatch.setattr(current, "current", lambda: runner)
    assert "the lock of slots cannot be asked: it is away" in map(str, get_scheduler_status().problems)
    runner.locks = None
    assert not any("lock" in str(problem) for problem in get_scheduler_status().problems)
