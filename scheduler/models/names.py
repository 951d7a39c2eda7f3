"""Names: columns by which rows are told apart, on every database by the case of their letters too."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import lookups

from scheduler.models.fields import ShortTextField

if TYPE_CHECKING:
    _CharField = models.CharField[str, str]
    _Lookup = lookups.BuiltinLookup[Any]
else:
    _CharField = ShortTextField
    _Lookup = lookups.BuiltinLookup


class NameField(_CharField):
    """A name. “Serial” and “serial” are two, for Python and for every database.

    MySQL and MariaDB compare text without regard to case, so a migration gives these columns a binary collation there.
    Lookups that mean any case (`icontains`) then need help to find it.
    """

    description = "A name"


class _AnyCase(_Lookup):
    def as_mysql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        found = f"LOWER({left}) {self.get_rhs_op(connection, f'LOWER({right})')}"
        return found, [*left_params, *right_params]


for kind in (lookups.IExact, lookups.IContains, lookups.IStartsWith, lookups.IEndsWith):
    NameField.register_lookup(type(kind.__name__, (_AnyCase, kind), {}))


DJANGO_TASKS = "django tasks"
"""The source of a job that carries the calls of one function, enqueued by Django Tasks."""
USUAL = "default"
"""What Django calls the backend and the queue of a function that names none."""


def is_of_function(name: str) -> bool:
    """Return whether the name of a job may be made of backend, queue and function."""
    return name.count(":") >= 2


def shown_name(name: str, source: str | None) -> str:
    """Return the name of a job for people: of one that carries the calls of a function, whose name is made of backend,
    queue and function, the function, and the others where they are not the usual ones."""
    if source != DJANGO_TASKS or not is_of_function(name):
        return name
    backend, _, rest = name.partition(":")
    queue, _, function = rest.rpartition(":")
    parts = {"backend": backend, "queue": queue}
    told = ", ".join(f"{word} {value}" for word, value in parts.items() if value != USUAL)
    return f"{function} ({told})" if told else function
