"""Telling: one record for each of the first jobs that were mended for a reason, and one that counts the others."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from scheduler.safetext import counted

logger = logging.getLogger("scheduler")

MOST_LINES = 5
"""Jobs that are named of each reason: a statement that changes thousands of them is one fault."""

Note = Callable[[str, str], None]


@contextmanager
def telling() -> Iterator[Note]:
    """Have the block note jobs by name, each with what was mended; they are told when it has written."""
    found: dict[str, str] = {}
    yield found.__setitem__
    names: dict[str, list[str]] = defaultdict(list)
    for name, difference in found.items():
        names[difference].append(name)
    for difference, mended in names.items():
        tell_mended(mended, difference)


def tell_mended(names: Iterable[str], difference: str) -> None:
    """Warn of jobs that were mended for one reason; the history of each has it."""
    first, further = (every := sorted(names))[:MOST_LINES], every[MOST_LINES:]
    for name in first:
        logger.warning("Job %r is mended: %s", name, difference, extra={"action": "job_mended", "job": name})
    if further:
        text = "So are %s, the last one %r: %s"
        words = counted(len(further), "further job")
        logger.warning(text, words, further[-1], difference, extra={"action": "jobs_mended"})
