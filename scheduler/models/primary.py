"""Primary: the tables of this app are read where they are written."""

from typing import TypeVar

from django.db import models, router

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
