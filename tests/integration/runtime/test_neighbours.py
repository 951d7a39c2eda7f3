"""Two projects on one Redis see each other; the processes of one project do not count."""

import pytest

from scheduler.clock import ManualClock
from scheduler.problems.process import of_this_process
from scheduler.runtime.neighbours import FORGOTTEN_AFTER, MARKS, Neighbours
from scheduler.runtime.pruner import Housekeeper
from tests.factories import T0


@pytest.fixture
def project(settings, redis_server):
    """Look as a project does: `project(secret_key, …)` returns what it has found."""

    def look(key, *, urls="ours.urls", fallbacks=(), setting="SCHEDULER_LOCK_URL", neighbours=None):
        settings.SCHEDULER_LOCK_URL = settings.SCHEDULER_ACTIVITY_STORE = ""
        setattr(settings, setting, redis_server.url)
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS, settings.ROOT_URLCONF = key, list(fallbacks), urls
        neighbours = neighbours or Neighbours()
        neighbours.look()
        return neighbours.found

    return look


@pytest.mark.parametrize("setting", ["SCHEDULER_LOCK_URL", "SCHEDULER_ACTIVITY_STORE"])
def test_another_project_on_the_redis_is_told_of_in_log_and_health(project, caplog, setting):
    assert project("ours", setting=setting) == {}
    assert caplog.records == []
    ((found, (other,)),) = project("theirs", urls="theirs.urls", setting=setting).items()
    assert (found, other.split()[0]) == (setting, "ours.urls")
    (record,) = caplog.records
    assert (record.levelname, record.action) == ("WARNING", "redis_shared")
    assert f"The Redis of {setting} is shared with another project (ours.urls" in record.getMessage()
    (problem,) = of_this_process({"fault": False, "runs": False, "redis_shared": {found: [other]}}, [])
    assert (problem.code, str(problem.severity), problem.subject) == ("redis_shared", "warning", setting)


def test_processes_of_one_project_do_not_count_with_other_urls_or_a_key_that_was_rotated(project):
    project("old")
    assert project("old", urls="workers.urls") == {}
    assert project("new", fallbacks=["old"]) == {}


def test_one_that_is_gone_is_forgotten_and_nothing_is_said_twice(project, redis_server, caplog):
    project("ours")
    neighbours = Neighbours()
    project("theirs", neighbours=neighbours)
    project("theirs", neighbours=neighbours)
    assert len(caplog.records) == 1
    for mark in redis_server.client.zrange(MARKS, 0, -1):
        redis_server.client.zincrby(MARKS, -FORGOTTEN_AFTER - 1, mark)
    assert project("theirs", neighbours=neighbours) == {"SCHEDULER_LOCK_URL": []}


def test_a_redis_that_does_not_answer_is_for_others_to_tell_of(settings, caplog):
    settings.SCHEDULER_LOCK_URL = "redis://127.0.0.1:1/0"
    neighbours = Neighbours()
    neighbours.look()
    assert (neighbours.found, caplog.records) == ({}, [])


def test_the_housekeeper_looks_once_a_minute():
    looks = []
    keeper = Housekeeper(None, None, ManualClock(T0), lambda: looks.append(1))
    assert [keeper.step(), len(looks)] == [60.0, 1]
