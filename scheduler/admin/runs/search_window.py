"""How far back a filtered list of runs searches: a bounded stretch of the ledger at a time, never all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduler.admin.request_values import whole_number
from scheduler.engine.views.days import midnight_of
from scheduler.engine.views.lately import STRETCH
from scheduler.models import RunLog

Day = tuple[datetime, datetime]
CHEAP = {"job", "p", "o", "e"}
"""What an index answers, or filters nothing."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The numbers of the runs searched, `first` to `last`; `before` asks for the stretch behind, if there is one."""

    first: int
    last: int
    newest: bool
    before: str = ""


class ReachFilter(admin.SimpleListFilter):
    """Keeps a search for what no index knows to a stretch of the ledger; the last of the filters."""

    title = _("reach")
    parameter_name = "before"
    template = "admin/scheduler/includes/reach_filter.html"
    reach: Reach | None = None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Nothing to choose from: the list itself leads further."""
        return []

    def has_output(self) -> bool:
        """Always there, or Django would leave it out."""
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        """None."""
        return iter(())

    def queryset(self, request: HttpRequest, queryset: QuerySet[RunLog]) -> QuerySet[RunLog]:
        """Keep the runs of the stretch."""
        self.reach = self._reach(request)
        if self.reach is None:
            return queryset
        return queryset.filter(pk__gte=self.reach.first, pk__lte=self.reach.last)

    def _reach(self, request: HttpRequest) -> Reach | None:
        asked = request.GET.keys() - CHEAP
        if "job" in request.GET or not asked or (asked == {"outcome"} and request.GET["outcome"] == "running"):
            return None
        return reach_before(whole_number(self.value() or ""), day_of_query(request))


def reach_before(before: int | None, day: Day | None = None) -> Reach | None:
    """Return the stretch before a run, else the one in which a day ends, else the newest; None where it is all."""
    numbers = RunLog.objects.order_by("pk").values_list("pk", flat=True)
    oldest, newest = numbers.first(), numbers.last()  # two queries: SQLite reads every row for both at once
    if oldest is None or newest is None:
        return None
    begin = newest if day is None else _place_of(day[1], oldest, newest)
    last = begin if before is None else min(before - 1, newest)
    first = max(last - STRETCH + 1, oldest)
    if first == oldest and last == newest:
        return None
    return Reach(first, last, last == begin, str(first) if first > oldest else "")


def day_of_query(request: HttpRequest) -> Day | None:
    """Return the beginning and the end of the `day` that is asked for, in the project's zone."""
    try:
        day = date.fromisoformat(request.GET.get("day", ""))
        return midnight_of(day), midnight_of(day + timedelta(days=1))
    except (ValueError, OverflowError):
        return None


def _place_of(at: datetime, oldest: int, newest: int) -> int:
    """Return a key somewhat behind the runs whose slots end at an instant: rows are written in the order of their
    slots, more or less. Each step halves what is left, so that a million rows take six."""
    low, high, near = oldest, newest, STRETCH // 4
    while high - low > near:
        middle = (low + high) // 2
        slot = RunLog.objects.filter(pk__gte=middle).order_by("pk").values_list("scheduled_for", flat=True).first()
        low, high = (middle, high) if slot is not None and slot < at else (low, middle)
    return min(high + near, newest)


def reach_of(changelist: Any) -> dict[str, Any]:
    """Return what the list says of its reach, and the addresses of the stretches behind and of the newest one."""
    spec = next((spec for spec in changelist.filter_specs if isinstance(spec, ReachFilter)), None)
    if spec is None or spec.reach is None:
        return {}
    further = changelist.get_query_string({"before": spec.reach.before}, ["p"]) if spec.reach.before else ""
    newest = "" if spec.reach.newest else changelist.get_query_string(remove=["before", "p"])
    return {"reach": spec.reach, "further": further, "newest": newest}
