"""Inherited: database connections that a forked child has from its parent, which must not use or close them.

What both say would go to the same socket. A child that runs attempts drops its copies, and keeps them in memory: a
driver that frees one says goodbye to the server in the name of the parent.
"""

import os
from typing import Any

from django.db import connections

_inherited: list[Any] = []
"""Sessions and pools of a parent; never freed."""


def drop_inherited() -> None:
    """Let go of the sessions and pools of the parent in this thread; the next query opens one of its own."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and any(connection.connection is one for one in _inherited):
            connection.connection = None
            connection.in_atomic_block = False
            connection.savepoint_ids.clear()


def _note() -> None:
    """In the child: note what is there at its birth. Pools are dropped at once: their threads are the parent's."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _inherited.append(connection.connection)
        pools = getattr(connection, "_connection_pools", None)
        if pools:
            _inherited.append(dict(pools))
            pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note)
