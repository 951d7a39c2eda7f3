"""Heartbeat: renews the lease of this instance; its loss asks every run to stop."""

import logging
import uuid

from scheduler.conf import conf
from scheduler.executors.pool import Pool
from scheduler.runtime.registration import Member
from scheduler.runtime.service import was_replaced
from scheduler.safetext import counted

logger = logging.getLogger("scheduler")


class Heartbeat:
    """The step of the heartbeat thread."""

    def __init__(self, member: Member, pool: Pool) -> None:
        self._member = member
        self._pool = pool

    def step(self) -> float:
        """Renew once; return the seconds until the next beat. A beat that hung until it was replaced says nothing."""
        try:
            if self._member.joined and not self._member.renew() and not was_replaced():
                self._declared_dead()
        finally:  # also when the database is away
            if self._member.joined and not self._member.may_claim() and not was_replaced():
                self._lease_is_over()
        return conf.HEARTBEAT_SECONDS

    def _lease_is_over(self) -> None:
        if not self._member.runs_may_go_on():
            self._say(self._stop_runs(), "the heartbeat could not be renewed in time")

    def _declared_dead(self) -> None:
        """Others closed our runs as lost: stop them, start no more, and join again as a new instance."""
        self._pool.withdraw()
        count = self._stop_runs()
        self._member.engine.instance_id = uuid.uuid4()
        self._member.joined = False
        self._say(count, "this instance was declared dead")

    def _stop_runs(self) -> int:
        living = self._pool.living()
        for one in living:
            one.stop("lease")
        return len(living)

    def _say(self, count: int, why: str) -> None:
        logger.warning("%s; %s asked to stop", why.capitalize(), counted(count, "run"), extra={"action": "lease_lost"})
