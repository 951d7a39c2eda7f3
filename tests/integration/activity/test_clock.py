"""The clock of the database is set back: nobody waits for the old time to come."""

import pytest

from scheduler import OnActivity, schedule_user_task
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.models import Activity, RunLog
from scheduler.registry import register, registry
from scheduler.testing import ManualScheduler
from tests.factories import MINUTE, T0, at

pytestmark = pytest.mark.django_db


@pytest.fixture
def play():
    register("summary", schedule=OnActivity(30 * MINUTE))(lambda **ids: None)
    manual = ManualScheduler(T0, only=["summary"])
    with manual.controlled():
        manual.run_due()
        yield manual
    registry.remove("summary")


def test_who_became_active_by_the_wrong_clock_is_due_now(play):
    play.simulate(at(hours=5))
    schedule_user_task("summary", 7)
    play.clock.set(at(hours=1))

    clock_moved_back(play._engine, at(hours=1))
    play.run_due(at(hours=1, minutes=1))

    assert RunLog.objects.count() == 1


def test_who_became_active_by_the_right_one_keeps_its_time(play):
    schedule_user_task("summary", 7)

    clock_moved_back(play._engine, at(minutes=1))

    assert Activity.objects.get().wake_at == at(minutes=30)
