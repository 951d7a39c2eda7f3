"""Tallies: what has been counted, and which jobs have a label of their own in the metrics."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from django.db.models import BigIntegerField, Sum, Value
from django.db.models.functions import Cast

from scheduler.engine.base import Engine
from scheduler.engine.db.fast_read import read_values
from scheduler.models import Tally
from scheduler.models.tally import AMOUNTS, GONE, GONE_AND_FOLDED, KEY, LAST_WITH_LABEL

NO_END = 2**63 - 1


Counted = tuple[int, str, str, int, int, int, int, int]
"""One row of counters, the columns of `KEY` and `AMOUNTS`: durations and delays in microseconds, their bounds in
milliseconds."""


def last_with_label(ids: Sequence[int], most: int) -> int:
    """Return the highest id of a job that could have a label of its own, of the ids of all jobs in their order.

    Those are the oldest, so a new job changes no label. `within_border` says which do have one.
    """
    if most and len(ids) <= most:
        return NO_END
    return ids[most - 1] if most else 0


def within_border(rows: Iterable[Counted], last: int, most: int) -> int:
    """Return `last`, or the border that is kept in the rows for the limit `most` where that is lower.

    A job beyond it stays without a label when one of the oldest is deleted: its totals would leave the common label,
    and a counter that falls reads as a reset and shows as a huge rate.
    """
    limit = str(most)
    return min([last, *(row[5] for row in rows if row[0] == LAST_WITH_LABEL and row[2] == limit)])


def counts(last: int) -> Iterator[Counted]:
    """Yield all that has been counted; `last` is that of `last_with_label`. One query.

    The database adds up what goes under the common label: those rows may be many, and are of no further use. The
    borders are among the rows.
    """
    tallies = Tally.objects.using(Engine().using).order_by()
    rows: Any = tallies.filter(job_id__lte=last).values_list(*KEY, *AMOUNTS)
    if last != NO_END:
        folded = Value(GONE_AND_FOLDED, output_field=BigIntegerField())
        sums = {f"sum_of_{name}": Cast(Sum(name), BigIntegerField()) for name in AMOUNTS}
        others: Any = tallies.filter(job_id__gt=last).values(*KEY[1:], other=folded).annotate(**sums)
        rows = rows.union(others.values_list("other", *KEY[1:], *sums), all=True)
    yield from cast(Iterator[Counted], read_values(rows))


def is_of_other(job_id: int, last: int) -> bool:
    """Return whether what is counted under this id, of a job that has no label, belongs to the common label."""
    return job_id == GONE_AND_FOLDED or (job_id != GONE and job_id > last)
