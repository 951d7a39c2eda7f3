"""Pace: how long runs take, on average, and so how many a process may claim: it shares a burst, and hoards nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.engine.claim_ahead import Reach
from scheduler.executors.live_run import Living
from scheduler.executors.queue import LONGEST_TURN

BATCH_SECONDS = 0.05
"""Claim as much as the pool can start within this time, so that a burst is shared and nothing is hoarded."""
LARGEST_BATCH = 500
LARGEST_QUEUE = 2 * LARGEST_BATCH
"""One batch is being started while the next one is claimed; what is due at one instant is claimed before it comes."""
MOST_AHEAD = 2000
"""What is due soon is claimed whole, since nothing is idle by then and a burst starts faster so: no more of it, though,
in all processes together."""
MOST_ASYNC = 200
REMEMBERED = 64
"""Runs. In a burst the threads wait for each other, so that one run alone may seem to take a hundred times as long; a
long one moves the average of so many all the same."""
SHORTEST_RUN = 0.0001


@dataclass(slots=True)
class Lasting:
    """The average of the first runs, then the moving average of the last ones."""

    seconds: float = 0.0
    count: int = 0

    def note(self, seconds: float) -> None:
        """Take in one more run."""
        self.count = min(self.count + 1, REMEMBERED)
        self.seconds += (seconds - self.seconds) / self.count


class Pace:
    """How long the runs of a pool take. The caller must hold the lock of the pool."""

    def __init__(self, seconds_per_run: float = BATCH_SECONDS) -> None:
        self.seconds_per_run = seconds_per_run
        """Of the last few runs, whatever their task: a guess until there are some."""
        self._of_task: dict[str, Lasting] = {}

    def note(self, task: str, seconds: float) -> None:
        """Take in one more run."""
        self._of_task.setdefault(task, Lasting()).note(seconds)
        self.seconds_per_run += (max(seconds, SHORTEST_RUN) - self.seconds_per_run) / 8

    def room(self, *, free: int, quick: int, waiting: int) -> int:
        """Return how many runs may be claimed now: at least for the `free` workers, more when runs are short.

        `quick` workers are free or soon will be; `waiting` runs are claimed already.
        """
        started = int(quick * BATCH_SECONDS / self.seconds_per_run)
        return max(0, min(LARGEST_BATCH, min(LARGEST_QUEUE, max(free, started)) - waiting))

    def reach(self, *, free: int, waiting: Sequence[Living], living: Sequence[Living]) -> Reach:
        """Return what may be claimed ahead of its instant beyond that, by what `free` workers end in a turn."""
        known = {task: lasting.seconds for task, lasting in self._of_task.items()}
        taken = sum(known.get(one.claimed.job.task, 0.0) for one in waiting if not one.on_loop)
        return Reach(
            count=MOST_AHEAD,
            held=len(waiting),
            seconds=free * LONGEST_TURN - taken,
            asynchronous=MOST_ASYNC - sum(one.on_loop for one in [*waiting, *living]),
            known=known,
        )
