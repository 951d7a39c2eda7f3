"""Paging of the run log: never counts millions of rows."""

from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

MOST = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to 10,000 rows and pages through those; older ones are found by a filter."""

    @cached_property
    def count(self) -> int:
        """How many rows can be paged through."""
        rows: Any = self.object_list
        return int(rows.order_by()[:MOST].count())
