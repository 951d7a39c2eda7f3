"""Hand-over to Celery: publishes the ids of attempts, by a connection of its own that never waits for long.

Celery's own pool of connections has no limit for a broker that takes a connection and says nothing, and gives a broken
channel to the next one that publishes.
"""

from types import SimpleNamespace
from typing import Any

from scheduler.contrib.celery.project import TASK, celery_app
from scheduler.executors.base import options_of
from scheduler.models import RunLog
from scheduler.safetext import told

SECONDS = 2.0
"""How long the broker has for each step: to take a connection, and to answer."""
BOUNDED: dict[str, dict[str, Any]] = {
    "amqp": {"read_timeout": SECONDS, "write_timeout": SECONDS, "confirm_publish": True},
    "redis": {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry_on_timeout": False},
}
"""Options of transports, by their types."""
AT_ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
"""Tried again by the thread that sends, which says so."""


class ByCelery:
    """Sends ids through the broker of the project's Celery app. See `Handover`."""

    def __init__(self) -> None:
        self._app = celery_app()
        self._connection: Any = None
        self._producer: Any = None

    def send(self, run: RunLog) -> None:
        """Publish the id of an attempt; raises ConnectionError that names the broker, within seconds."""
        options = options_of(run)
        try:
            self._connect()
            self._app.send_task(
                TASK,
                args=[run.pk],
                producer=self._producer,
                retry=False,
                ignore_result=True,
                result_cls=lambda task_id: SimpleNamespace(),  # the ledger has the result: no backend is asked
                add_to_parent=False,
                **options,
            )
        except BaseException as error:
            at = self._at()
            self._drop()
            if not isinstance(error, Exception):
                raise
            raise ConnectionError(f"{at}: {type(error).__name__}: {told(error)}") from error

    def _connect(self) -> None:
        if self._connection is not None:
            return
        kind = self._app.connection_for_write().transport.driver_type
        self._connection = self._app.connection_for_write(
            connect_timeout=SECONDS, transport_options={**AT_ONCE, **BOUNDED.get(kind, {})}
        )
        hosts = len(self._connection.alt or "1")
        self._connection.ensure_connection(
            **{**AT_ONCE, "max_retries": hosts - 1},
            reraise_as_library_errors=False,  # connect() pauses and tries again
        )
        self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)

    def _at(self) -> str:
        """Name the broker, without its password."""
        return "the broker" if self._connection is None else f"the broker {self._connection.as_uri()}"

    def _drop(self) -> None:
        """Throw the connection away: after an error, what is left of it may wait without end."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            connection.collect(SECONDS)
