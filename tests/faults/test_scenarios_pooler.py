"""PostgreSQL behind a pooler that lends a session for one transaction: B4."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.faults import pooler
from tests.faults.databases import Postgresql
from tests.faults.scenes import Scene, every, scene
from tests.faults.timing import mono

pytestmark = [pytest.mark.faults, pytest.mark.postgresql, pytest.mark.timeout(240)]

SESSIONS = 2
LOCKS = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'"
TTL_AND_TICK = 4.0 + 0.5 + 0.5


@pytest.fixture
def play() -> Iterator[Scene]:
    """Two processes behind one pooler with two sessions."""
    if pooler.program() is None:
        pytest.skip("pgbouncer is not installed")
    with (
        scene("postgresql", {"tick": every(1, body="queries")}, runners=2) as play,
        pooler.pooler(play.database.port, SESSIONS) as port,
    ):
        for runner in play.runners:
            runner.url = play.database.url(port)
        yield play


def test_nothing_is_tied_to_a_session_B4(play: Scene) -> None:
    database = play.database
    assert isinstance(database, Postgresql)
    play.start()
    play.wait_for_instances(2)
    locks: list[int] = []
    sessions: list[int] = []

    def look() -> bool:
        locks.append(database.query(LOCKS)[0]["n"])
        sessions.append(database.sessions())
        return len(play.starts("tick")) >= 8

    play.wait(look, what="it runs")
    play.runners[0].kill()
    killed = mono()
    play.wait(lambda: len(play.starts("tick", since=killed + TTL_AND_TICK)) >= 3, what="the other one goes on")
    (instance,) = database.sample().instances
    assert instance
    play.stop()
    assert [key for key, count in Counter(line.key for line in play.starts()).items() if count > 1] == []
    slots = [row.slot for row in play.rows("tick") if row.attempt == 1]
    assert len(slots) == len(set(slots))
    assert max(locks) == 0
    assert 0 < max(sessions) <= SESSIONS
