"""Primary: the tables of this app are read where they are written."""

from typing import Any, TypeVar

from django.db import connections, models, router

from scheduler.models.distrust import read_with_distrust

M = TypeVar("M", bound=models.Model)


class PrimaryQuerySet(models.QuerySet[M]):
    """Rows of the database that jobs are written to, by the host project's router, unless `using()` names another.

    Decisions read from a lagging replica would overwrite newer ones. As `base_manager_name` it holds for
    what Django reads by itself too: the job of a run, a deferred column.
    """

    @property
    def db(self) -> str:
        """The database that a query asks."""
        from scheduler.models.job import Job

        return self._db or router.db_for_write(Job, **self._hints)  # type: ignore[attr-defined]

    def _fetch_all(self) -> None:
        """As Django's, and a value that the driver cannot read costs no other row."""
        read_with_distrust(self.db, super()._fetch_all)


def locked(rows: models.QuerySet[M], *, skip_locked: bool = False) -> models.QuerySet[M]:
    """Lock the rows where the database can; elsewhere a transaction that writes holds the only lock there is."""
    features = connections[rows.db].features
    if not features.has_select_for_update:
        return rows
    skip_locked = skip_locked and features.has_select_for_update_skip_locked
    of = ("self",) if features.has_select_for_update_of else ()
    return rows.select_for_update(skip_locked=skip_locked, of=of)


def lock_in_order(rows: models.QuerySet[Any]) -> bool:
    """Lock the rows by their keys, as claims and ends do, before an update of many; False if there are none.

    An update locks them as they lie, and two orders can block each other. In the transaction of the caller.
    """
    if not connections[rows.db].features.has_select_for_update:
        return True  # the writer holds the only lock there is, and the update finds the rows
    return bool(list(locked(rows.order_by("pk")).values_list("pk", flat=True)))
