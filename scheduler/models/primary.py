"""Primary: the tables of this app are read where they are written."""

from typing import TypeVar

from django.db import connections, models, router

M = TypeVar("M", bound=models.Model)


class PrimaryQuerySet(models.QuerySet[M]):
    """Rows of the database that jobs are written to, by the host project's router, unless `using()` names another.

    Whoever decides by a replica, which lags, undoes what was decided a moment ago. As `base_manager_name` it holds for
    what Django reads by itself too: the job of a run, a deferred column.
    """

    @property
    def db(self) -> str:
        """The database that a query asks."""
        from scheduler.models.job import Job

        return self._db or router.db_for_write(Job, **self._hints)  # type: ignore[attr-defined]


def locked(rows: models.QuerySet[M], *, skip_locked: bool = False) -> models.QuerySet[M]:
    """Lock the rows where the database can; elsewhere a transaction that writes holds the only lock there is."""
    features = connections[rows.db].features
    if not features.has_select_for_update:
        return rows
    skip_locked = skip_locked and features.has_select_for_update_skip_locked
    of = ("self",) if features.has_select_for_update_of else ()
    return rows.select_for_update(skip_locked=skip_locked, of=of)
