"""Tasks that harm the thread, the connection or the process that runs them."""

import logging
import os
from threading import Event

from django.db import connection, transaction

from scheduler.models import Group

from .journal import append, note


class NotEvenAnException(BaseException):
    """Passes every `except Exception`."""


def base_exception() -> None:
    note("start")
    note("fail")
    raise NotEvenAnException("as planned")


def exits() -> None:
    note("start")
    append("die", point="os._exit")
    os._exit(9)  # gunicorn takes 3 and 4 for an application that cannot be loaded, and gives up


def closes_connection() -> None:
    note("start")
    Group.objects.count()
    connection.close()
    note("end")


def closes_socket() -> None:
    """Closes the driver's connection behind Django's back."""
    note("start")
    Group.objects.count()
    connection.connection.close()
    note("end")


def leaves_transaction() -> None:
    """Writes, and neither commits nor rolls back."""
    note("start")
    transaction.atomic().__enter__()
    Group.objects.create(name=f"left open {os.getpid()}")
    note("end")


def huge_log() -> None:
    note("start")
    for number in range(2000):
        logging.getLogger("rig").warning("%d \x00 %s", number, "x" * 2000)
    note("end")


def never_returns() -> None:
    note("start")
    Event().wait(3600)


TASKS = {
    "base-exception": base_exception,
    "exits": exits,
    "closes-connection": closes_connection,
    "closes-socket": closes_socket,
    "leaves-transaction": leaves_transaction,
    "huge-log": huge_log,
    "never-returns": never_returns,
}
