"""Stream: tasks that are enqueued one after the other are gathered, since a pass for each would cost more than they."""

A_MOMENT = 0.005
"""Seconds in which a task that was claimed may start: the next pass would compete with it for the interpreter."""
FEW_TASKS, MANY_TASKS, LATELY = 4, 16, 0.05
"""So many may be enqueued by one request. More at once, or `MANY_TASKS` in `LATELY` seconds, come in a stream."""
GATHER_SECONDS, LONGEST_GATHER = 0.01, 0.05
PASS_TO_GATHER = 10
"""While tasks come in a stream, passes take a tenth of the time at most, unless they are very slow."""


class Stream:
    """Whether so many tasks come that the next look for them comes by itself, in a moment."""

    flows = False
    _since, _count = 0.0, 0
    """Since when tasks are counted, and how many were taken since."""

    def note(self, tasks: int, began: float) -> None:
        """Note how many tasks a pass has taken that `began` then, on the monotonic clock."""
        if began - self._since > LATELY:
            self._since, self._count = began, 0
        self._count += tasks
        self.flows = tasks > FEW_TASKS or (tasks > 0 and self._count >= MANY_TASKS)

    def seconds(self, took: float) -> float:
        """Return the seconds to gather after a pass that `took` so long."""
        return min(max(GATHER_SECONDS, took * PASS_TO_GATHER), LONGEST_GATHER)
