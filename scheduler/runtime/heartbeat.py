"""Heartbeat: renews the lease of this instance; its loss asks every run to stop."""

import logging
import uuid

from scheduler.conf import conf
from scheduler.executors.thread import ThreadExecutor
from scheduler.runtime.member import Member
from scheduler.runtime.service import was_replaced

logger = logging.getLogger("scheduler")


class Heartbeat:
    """The step of the heartbeat thread."""

    def __init__(self, member: Member, executor: ThreadExecutor) -> None:
        self._member = member
        self._executor = executor

    def step(self) -> float:
        """Renew once; return the seconds until the next beat. A beat that hung until it was replaced says nothing."""
        try:
            if self._member.joined and not self._member.renew() and not was_replaced():
                self._declared_dead()
        finally:  # also when the database is away
            if self._member.joined and not self._member.may_claim() and not was_replaced():
                self._say(self._stop_runs(), "the heartbeat could not be renewed in time")
        return conf.HEARTBEAT_SECONDS

    def _declared_dead(self) -> None:
        """Others closed our runs as lost: stop them, start no more, and join again as somebody new."""
        self._executor.withdraw()
        count = self._stop_runs()
        self._member.engine.instance_id = uuid.uuid4()
        self._member.joined = False
        self._say(count, "this instance was declared dead")

    def _stop_runs(self) -> int:
        living = self._executor.living()
        for one in living:
            one.stop("lease")
        return len(living)

    def _say(self, count: int, why: str) -> None:
        logger.warning("%s; %d runs asked to stop", why.capitalize(), count, extra={"action": "lease_lost"})
