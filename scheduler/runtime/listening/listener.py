"""Listener: hears of what other processes have changed, and wakes the dispatcher. It reads and writes no row."""

import logging
import selectors
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.runtime.listening.channel import JOBS, TASKS, name
from scheduler.safetext import told
from scheduler.schedules.duration import length_words

logger = logging.getLogger("scheduler")

HEAR_SECONDS = 0.5
"""Seconds of one step, so that the thread ends soon when it is to."""
RETRY_SECONDS = (0.0, 1.0, 5.0, 15.0, 60.0)
"""Waits after failures in a row. A connection that was cut while it listened is made again at once."""
LOG_EVERY = 3600.0
OF_ITS_OWN: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "pool": None,
}  # fmt: skip
"""A connection that only waits would never find out that the other end is gone; and no pool has one to spare for it."""


class Listener:
    """The step of the listener thread, which has a connection of its own."""

    def __init__(self, engine: Engine, clock: Clock, *, changed: Callable[[], None], enqueued: Callable[[], None]):
        self._engine, self._clock = engine, clock
        self._act: Mapping[str, Callable[[], None]] = {JOBS: changed, TASKS: enqueued}
        self._session: BaseDatabaseWrapper | None = None
        self._failures = 0
        self._logged_at = float("-inf")

    @property
    def is_listening(self) -> bool:
        """Whether other processes are heard."""
        return self._session is not None

    def step(self) -> float:
        """Wait for a moment, and act on what is heard; return the seconds until the next try where that fails.

        Nothing is raised: not to hear the others is no trouble of this process, which polls.
        """
        try:
            if self._session is None:
                self._session = self._listening()
                self._act[JOBS]()  # what was told before went unheard
            self._hear(self._session)
        except Exception as error:
            return self._after(error)
        self._failures = 0
        return 0.0

    def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()

    def _listening(self) -> BaseDatabaseWrapper:
        """Return a new connection that listens, as Django makes it: with its role and its options."""
        alias = self._engine.using
        session = connections[alias].copy(alias)
        session.settings_dict["OPTIONS"] = OF_ITS_OWN | session.settings_dict["OPTIONS"] | {"pool": None}
        session.settings_dict["AUTOCOMMIT"] = True  # a transaction that stays open hears nothing
        session.inc_thread_sharing()  # it is closed by the thread that ends this one
        try:
            with session.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                if cursor.fetchone()[0] != session.connection.pgconn.backend_pid:
                    raise DatabaseError("a pooler stands between, whose sessions change")
                cursor.execute(f"LISTEN {session.ops.quote_name(name())}")
        except BaseException:
            session.close()
            raise
        return session

    def _hear(self, session: BaseDatabaseWrapper) -> None:
        server = session.connection.pgconn
        with selectors.DefaultSelector() as waiting:  # takes any file number
            waiting.register(server.socket, selectors.EVENT_READ)
            if not waiting.select(HEAR_SECONDS):
                return
        server.consume_input()
        heard = set()
        while (note := server.notifies()) is not None:
            what, _, by = note.extra.decode().partition(" ")
            heard |= {what} if by != str(self._engine.instance_id) else set()
        for what in heard & self._act.keys():
            self._act[what]()

    def _after(self, error: Exception) -> float:
        self.close()
        wait = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        now = self._clock.monotonic()
        if self._failures > 1 and now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            text = "Changes by other processes are not heard, and found by looking every %s: %s"
            with suppress(Exception):  # a logging handler that fails must not end the thread
                logger.warning(text, length_words(conf.POLL_SECONDS), told(error), extra={"action": "cannot_listen"})
        return wait
