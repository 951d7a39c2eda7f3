"""Processes die, freeze, disagree about the time, or start together: G1, G3, N4, S1, S2."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime

import pytest

from tests.faults.databases import PROJECT, Sqlite
from tests.faults.processes import environment
from tests.faults.scenes import ALL, SERVERS, Scene, every, once, scene, soon
from tests.faults.timing import pause

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

STANDSTILL = 30
"""Seconds without an end in the midst of 500 runs: all of them take less than one on an idle machine."""


@pytest.mark.parametrize("kind", ALL)
def test_a_killed_process_leaves_nothing_running_and_others_run_its_job_G1(kind: str) -> None:
    jobs = {"long": once(soon(0), seconds=60), "other": once(soon(10), seconds=9)}
    with scene(kind, jobs, runners=2) as play:
        play.runners[0].options["order"] = {"steady": False, "jobs": {"long": jobs["long"]}}
        play.start(0)
        play.wait(lambda: play.starts("long"), what="the long job runs")
        play.start(1)
        play.wait(lambda: play.starts("other"), what="the other job runs, in the other process")
        play.runners[0].kill()
        play.wait(lambda: len(play.starts("long")) == 2, seconds=20, what="its slot is run again")
        first, second = (row for row in play.rows("long") if row.status in ("lost", "running"))
        assert (first.status, first.attempt, second.attempt) == ("lost", 1, 2)
        assert first.finished_at is not None
        play.wait(lambda: play.ends("other"), what="the other job ends")
        play.wait(lambda: [row.status for row in play.rows("other")] != ["running"], what="its end is written")
        assert [row.status for row in play.rows("other")] == ["succeeded"]


@pytest.mark.parametrize("kind", ALL)
def test_a_process_that_was_frozen_beyond_its_lease_changes_no_verdict_G3(kind: str) -> None:
    with scene(kind, {"nap": once(soon(0), seconds=3)}, runners=2) as play:
        play.start(0)
        play.wait(lambda: play.starts("nap"), what="it runs")
        _freeze_between_transactions(play)
        play.start(1)
        play.wait(lambda: len(play.ends("nap")) == 1, what="the other instance runs it again")
        play.runners[0].thaw()
        play.wait(lambda: len(play.ends("nap")) == 2, what="the frozen one ends late")
        play.wait(lambda: _first(play).note.startswith("finished late"), what="that is noted")
        first, second = sorted(play.rows("nap"), key=lambda row: row.attempt)
        assert (first.status, second.status) == ("lost", "succeeded")
        job = play.job("nap")
        assert (job.successes, job.losses, job.active_runs) == (1, 1, 0)
        play.wait_for_instances(2)
        play.stop()


def _freeze_between_transactions(play: Scene) -> None:
    """A process that is frozen while it writes keeps a SQLite file locked for all: that is no question of verdicts."""
    play.runners[0].freeze()
    while isinstance(play.database, Sqlite) and _is_locked(play.database):
        play.runners[0].thaw()
        pause(0.05)
        play.runners[0].freeze()


def _is_locked(database: Sqlite) -> bool:
    with closing(sqlite3.connect(database.path, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


def _first(play: Scene):  # type: ignore[no-untyped-def]
    return min(play.rows("nap"), key=lambda row: row.attempt)


def test_health_is_red_when_nobody_runs_what_is_due_N4() -> None:
    with scene("sqlite", {"tick": every(1)}) as play:
        assert _health(play) == 0, "no job yet"
        play.start()
        play.wait(lambda: play.ends("tick"), what="it runs")
        play.wait(lambda: _health(play) == 0, what="green while it runs")
        play.runners[0].freeze()
        play.wait(lambda: _health(play) == 1, what="red when the process hangs")
        play.runners[0].thaw()
        play.wait(lambda: _health(play) == 0, what="green again")
        play.runners[0].kill()
        play.wait(lambda: _health(play) == 1, what="red when nobody is there")


def _health(play: Scene) -> int:
    env = environment(play.rig.folder, play.database.url(play.database.port), 9, play.runners[0].options)
    command = [sys.executable, "manage.py", "scheduler_health"]
    return subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, timeout=30, check=False).returncode


@pytest.mark.parametrize(
    ("kind", "delay"),
    [("sqlite", 0.0), *(pytest.param(*one.values, delay, marks=one.marks) for one in SERVERS for delay in (0.0, 0.2))],
)
def test_what_is_due_at_one_instant_runs_once_however_many_processes_wait_for_it_S1(kind: str, delay: float) -> None:
    """Also when every answer of the database is late by up to `delay` seconds, each by another time."""
    at = soon(min(18 + 1.5 * os.getloadavg()[0], 50))  # until all of them are up
    order = {"burst": 500, "at": datetime.fromtimestamp(at, UTC).isoformat()}
    with scene(kind, {}, runners=4, **order) as play:
        play.start()
        play.wait_for_instances(4)
        for proxy in play.rig.proxies:
            proxy.delay = delay
        play.wait_while_it_grows(lambda: len(play.ends()), 500, standstill=at - soon(0) + STANDSTILL)
        for proxy in play.rig.proxies:
            proxy.delay = 0.0
        play.stop()
        rows = play.rows()
        assert Counter(row.status for row in rows) == {"succeeded": 500}
        assert len({row.job for row in rows}) == len(play.starts()) == len({line.job for line in play.starts()}) == 500


@pytest.mark.parametrize("kind", SERVERS)
def test_processes_whose_clocks_disagree_run_each_slot_once_and_none_early_S2(kind: str) -> None:
    at = soon(25)
    with scene(kind, {"tick": every(1), "once": once(at)}, runners=3) as play:
        for index, offset in ((1, -5), (2, 3600)):
            play.runners[index].steer("offset", str(offset))
        play.start()
        play.wait_for_instances(3)
        play.wait(lambda: play.ends("once"), what="the fixed time ran")
        pause(3)
        play.stop()
        starts = play.starts()
        assert [key for key, count in Counter(line.key for line in starts).items() if count > 1] == []
        early = [line for line in starts if line.slot and line.wall < line.slot.timestamp()]
        assert early == [], "all servers are on this host, and have its clock"
        slots = [row.slot for row in play.rows("tick")]
        assert len(slots) == len(set(slots))
        assert len(play.starts("once")) == 1
        assert [row.reason for row in play.rows() if row.status == "lost"] == [], "no lease was misjudged"
