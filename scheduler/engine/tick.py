"""Tick: one pass of the engine. Claim what is due and say when to wake."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler.engine.base import Engine
from scheduler.engine.claim import Claims, claim_due, claim_waiting, plan_jobs
from scheduler.engine.limits import end_expired_pauses
from scheduler.engine.presence import Look, look, starts_after
from scheduler.models import UNPLANNED

IN_A_MOMENT = timedelta(milliseconds=100)
"""An instance that counts the places of groups is done with it by then."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one pass took, when to look again (None: nothing is planned), and whether to look again at once.

    `alive` is False when this instance was declared dead meanwhile.
    """

    claims: Claims
    wake_at: datetime | None = None
    again: bool = False
    alive: bool = True
    someone_died: bool = False


def tick(engine: Engine, now: datetime, *, ahead: timedelta, capacity: int) -> Tick:
    """Claim at most `capacity` runs that start before `now + ahead`: promised attempts first, then due jobs."""
    seen = look(engine, now)
    if seen is None:
        return Tick(Claims(), alive=False)
    if _is_due(seen.next_pause_end_at, now):
        end_expired_pauses(engine, now)
    claims = plan_jobs(engine, now) if seen.next_job_at == UNPLANNED else Claims()
    planned = claims.looked_at
    if capacity > 0 and _is_due(seen.next_attempt_at, now + ahead):
        claims += claim_waiting(engine, now, ahead=ahead, limit=capacity)
    left = capacity - len(claims.runs)
    if left > 0 and _is_due(seen.next_job_at, now + ahead):
        claims += claim_due(engine, now, ahead=ahead, limit=left)
    free = len(claims.runs) < capacity
    again = planned > 0 or (claims.looked_at > 0 and free) or _is_due(seen.next_pause_end_at, now)
    looks = _looks_to_come(engine, seen, now, ahead, hidden=free and not again)
    if free and claims.met_another:
        looks.append(now + IN_A_MOMENT)
    return Tick(claims, wake_at=min(looks, default=None), again=again, someone_died=seen.someone_died)


def _is_due(at: datetime | None, horizon: datetime) -> bool:
    return at is not None and at <= horizon


def _looks_to_come(engine: Engine, seen: Look, now: datetime, ahead: timedelta, *, hidden: bool) -> list[datetime]:
    """Return when to look again: `ahead` of the earliest start to come, or when a pause ends.

    What is due already waits for a free worker or a free job. Although workers are free, it may wait for its group or
    the end of a pause: then it hides what comes after it, and what comes so soon is looked at again in its instant.
    """
    starts = [seen.next_job_at, seen.next_attempt_at]
    if hidden and any(_is_due(at, now + ahead) for at in starts):
        starts += starts_after(engine, now)
    to_come = [at for at in starts if at is not None and at > now]
    looks = [at - ahead if at - ahead > now else at for at in to_come]
    if seen.next_pause_end_at is not None and seen.next_pause_end_at > now:
        looks.append(seen.next_pause_end_at)
    return looks
