"""One run: see a single run through, from its claim to its end, by the parts of a scheduler, and leave."""

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.conf import conf
from scheduler.engine.base import Claimed
from scheduler.models import RunLog
from scheduler.runtime import publish
from scheduler.runtime.attendance import Attendance, Claim, Line
from scheduler.runtime.interrupt import StopRequest

INLINE = "Run inside the transaction, or database in memory, of the caller, as in a test: no timeout and no stop holds."


def see_through(claim: Claim, started_by: str, *, stop: StopRequest | None, log: Line) -> RunLog | None:
    """Claim a run, carry it out and return its row; None where `claim` has none, or its answer came too late.

    While it runs, this process is an instance like any other. What happens inside a transaction or on a database in
    memory, as in a test, is not seen by other threads: there the task runs in this one.
    """
    stop = stop or StopRequest()
    one = _OneRun(started_by, log)
    try:
        claimed = one.inline(claim) if is_private(connections[one.engine.using]) else one.begin(claim)
        if claimed is None:
            return None
        with one.heard_by(stop.wake):
            stop.wait(one.has_ended)
        if stop.came is not None:
            one.stop(f"its process was ended by {stop.came.name}")
        return RunLog.objects.using(one.engine.using).select_related("job").get(pk=claimed.run.pk)
    finally:
        one.leave()


class _OneRun(Attendance):
    """An instance for this one run, which a person waits for."""

    def inline(self, claim: Claim) -> Claimed | None:
        """Carry the run out in this thread."""
        self._log(INLINE)
        return self.carry_out(claim)

    def has_ended(self) -> bool:
        """Whether the run has ended, and the ledger says so."""
        return not self.pool.run_ids() and not self.recorder.pending()

    def stop(self, why: str) -> None:
        """Ask the run to stop, and wait for it; close it as lost if it does not."""
        self.pool.stop_runs(self.pool.run_ids(), "cancelled")
        self.pool.request_stop()
        self.pool.withdraw()  # it may not have begun
        self.pool.wait_until_idle(conf.SHUTDOWN_SECONDS)
        self.write_ends()
        unasked = self.held().filter(stop_requested_at__isnull=True)
        unasked.update(stop_requested_at=self.clock.now())  # a person ended it: not again
        publish.settled(self.close_held(why))


def is_private(connection: BaseDatabaseWrapper) -> bool:
    """Whether no other thread sees what is written on the connection."""
    name = str(connection.settings_dict["NAME"])
    return connection.in_atomic_block or name == ":memory:" or "mode=memory" in name
