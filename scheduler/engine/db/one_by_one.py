"""One by one: what the database refuses of one row costs no other row its turn."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from scheduler.engine.db.transactions import is_of_statement, is_said_by_trigger, may_be_of_one_row

R = TypeVar("R")
T = TypeVar("T")


def together(write: Callable[[], T]) -> T | None:
    """Write rows at once; None where the database refuses that and may take most of them one by one."""
    try:
        return write()
    except Exception as error:
        if not may_be_of_one_row(error):
            raise
        return None


def each_alone(
    rows: Mapping[int, R], write: Callable[[R], object], *, known: Collection[int] = ()
) -> list[tuple[R, Exception]]:
    """Write rows one by one that were refused `together`; returns those that are refused alone, each with its error.

    `write` returns whether it has carried out a statement. A trigger may refuse one row with an error that a missing
    table or column gives for all of them. So where each statement fails, and none was carried out, none of the rows is
    at fault: the error is that of the whole pass, and is raised. One that was alone is at fault if a trigger spoke of
    it, or if it is `known` to have been refused alone before.
    """
    refused: dict[int, Exception] = {}
    has_written = False
    for pk, row in rows.items():
        try:
            has_written |= bool(write(row))
        except Exception as error:
            if not may_be_of_one_row(error):
                raise
            refused[pk] = error
    if not has_written and (of_all := _of_all(refused, known)) is not None:
        raise of_all
    return [(rows[pk], why) for pk, why in refused.items()]


def _of_all(refused: Mapping[int, Exception], known: Collection[int]) -> Exception | None:
    """Return the error of the pass where none of the rows is at fault for being refused."""
    errors = list(refused.values())
    if not errors or any(pk in known or not is_of_statement(error) for pk, error in refused.items()):
        return None
    return errors[0] if len(errors) > 1 or not is_said_by_trigger(errors[0]) else None
