"""A living run: what its process knows of it while it goes on."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.context import RunContext
from scheduler.engine.base import Claimed
from scheduler.models import Trigger

if TYPE_CHECKING:
    from scheduler.executors.base import Caller


@dataclass(slots=True)
class Living:
    """One run that waits for its start, or has started and has not ended. `began` is on the monotonic clock."""

    claimed: Claimed
    context: RunContext
    caller: "Caller"
    """What calls its task."""
    holds_worker: bool = True
    """Whether it occupies a worker thread; a run on the event loop does until its call is there."""
    on_loop: bool = False
    """Whether its call belongs on the event loop."""
    due: float = 0.0
    """When it may start, on the monotonic clock."""
    began: float = 0.0
    took: float = 0.0
    """Seconds from start to end, once it has ended."""
    thread_id: int = 0
    cancel: Callable[[], object] | None = None
    """Interrupts the call, where that is possible."""
    ended: bool = False
    """Whether it has come to its end."""
    over_time: bool = False
    stuck: bool = False
    abandoned: bool = False
    given_up: bool = False
    """Whether the ledger has it as abandoned."""
    saved: tuple[int, object] = (0, None)
    """How much of the log, and which progress, the ledger has, or will not have."""
    refused: bool = False
    """Whether the ledger refused a text of it, which is said once."""

    @property
    def is_for_user(self) -> bool:
        """Whether it follows what a user did, and is no part of the plan."""
        return bool(self.claimed.run.trigger == Trigger.ACTIVITY)

    @property
    def is_task(self) -> bool:
        """Whether it is a task that was enqueued, which leaves a worker to the plan."""
        return self.claimed.run.cause.carried

    def stop(self, reason: str) -> None:
        """Ask the run to stop, and interrupt it where that is possible."""
        self.context.request_stop(reason)
        if self.cancel is not None:
            self.cancel()

    def stack(self) -> str:
        """Return where the thread of the run is just now."""
        frame = sys._current_frames().get(self.thread_id) if self.holds_worker else None
        if frame is None:
            return "It runs on the event loop or in a process of its own: no stack of a thread."
        return "Stack of its thread:\n" + "".join(traceback.format_stack(frame))
