"""Tasks that harm the thread, the connection or the process that runs them."""

import logging
import os
import signal
from collections.abc import Callable
from threading import Event

from django.db import connection, transaction

from scheduler.models import Group

from .journal import append, note

Task = Callable[[], None]


def testifying(task: Task) -> Task:
    """A task that says in the journal when it starts and how it ends, also when the database is away."""

    def poison() -> None:
        note("start")
        try:
            task()
        except BaseException:
            note("fail")
            raise
        note("end")

    return poison


class NotEvenAnException(BaseException):
    """Passes every `except Exception`."""


def base_exception() -> None:
    raise NotEvenAnException("as planned")


def exits() -> None:
    append("die", point="os._exit")
    os._exit(9)  # gunicorn takes 3 and 4 for an application that cannot be loaded, and gives up


def closes_connection() -> None:
    Group.objects.count()
    connection.close()


def closes_socket() -> None:
    """Closes the driver's connection behind Django's back."""
    Group.objects.count()
    connection.connection.close()


def leaves_transaction() -> None:
    """Writes, and neither commits nor rolls back."""
    transaction.atomic().__enter__()
    Group.objects.create(name=f"left open {os.getpid()}")


def huge_log() -> None:
    for number in range(2000):
        logging.getLogger("rig").warning("%d \x00 %s", number, "x" * 2000)


def never_returns() -> None:
    Event().wait(3600)


def forks() -> None:
    """Forgets to end its child, which returns as the task itself does. One that goes on leaves us without an end."""
    note("start")
    if (child := os.fork()) == 0:
        signal.alarm(30)  # should it go on, no longer than the round
    elif _ends(child):
        note("end")


def _ends(child: int) -> bool:
    for _ in range(100):
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        Event().wait(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


TASKS = {
    "base-exception": testifying(base_exception),
    "exits": testifying(exits),
    "closes-connection": testifying(closes_connection),
    "closes-socket": testifying(closes_socket),
    "leaves-transaction": testifying(leaves_transaction),
    "huge-log": testifying(huge_log),
    "never-returns": testifying(never_returns),
    "forks": forks,
}
