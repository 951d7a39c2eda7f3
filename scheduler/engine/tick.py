"""Tick: one pass of the engine. Claim what is due and say when to wake."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduler.engine.base import Engine
from scheduler.engine.claim import Claims, claim_due, plan_jobs
from scheduler.engine.claim_ahead import NO_REACH, Reach, Room
from scheduler.engine.claim_promised import claim_waiting
from scheduler.engine.handover import MOST_PROMISED
from scheduler.engine.instances import Look, look, starts_after
from scheduler.engine.outcome import NO_TIME
from scheduler.engine.pauses import end_expired_pauses
from scheduler.engine.tasks.claim import claim_tasks, next_task_after
from scheduler.engine.unable import forget_old
from scheduler.models import AT_ONCE

NOTHING_HANDED: Mapping[str, int] = {}
IN_A_MOMENT = timedelta(milliseconds=100)
"""An instance that counts the places of groups is done with it by then."""


@dataclass(frozen=True, slots=True)
class Tick:
    """What one pass took, when to look again (None: nothing is planned), and whether to look again at once.

    `starved`: more may be due than could be taken. `alive` is False when this instance was declared dead by then.
    """

    claims: Claims
    wake_at: datetime | None = None
    again: bool = False
    starved: bool = False
    alive: bool = True
    someone_died: bool = False
    tasks_wait: bool = False
    """More tasks may be due than could be taken."""
    tasks: int = 0
    """How many tasks were taken: to look for what follows them can wait for a moment."""


def tick(
    engine: Engine,
    now: datetime,
    *,
    ahead: timedelta,
    capacity: int,
    room: Room | None = None,
    reach: Reach = NO_REACH,
    handing: Mapping[str, int] = NOTHING_HANDED,
    task_capacity: int | None = None,
) -> Tick:
    """Claim at most `capacity` runs that start before `now + ahead`: promised attempts first, then due jobs.

    Tasks that were enqueued come last, at most `task_capacity` of them (None: what is left of `capacity`).

    Those for users as far as there is `room`; in a pool of one they come last, or due jobs might never have their turn.
    `handing`: executors to which runs are handed over, and how many of each may be now, whatever is free here.
    """
    seen = look(engine, now)
    if seen is None:
        return Tick(Claims(), alive=False)
    passed = _pass(engine, seen, now, ahead, capacity, room, reach.of_one_pass(seen.instances, capacity), handing)
    left = max(0, capacity - len(passed.claims.runs))
    return _with_tasks(engine, seen, now, passed, left if task_capacity is None else min(left, task_capacity))


def _pass(
    engine: Engine,
    seen: Look,
    now: datetime,
    ahead: timedelta,
    capacity: int,
    room: Room | None,
    reach: Reach,
    handing: Mapping[str, int],
) -> Tick:
    pauses_end = _is_due(seen.next_pause_end_at, now)
    if pauses_end:
        end_expired_pauses(engine, now)
    claims = plan_jobs(engine, now) if seen.next_job_at == AT_ONCE else Claims()
    changed = claims.looked_at + pauses_end
    claims += _claimed(engine, seen, now, ahead, capacity, room, reach)
    kept = _handed_over(engine, seen, now, ahead, handing)
    forget_old(engine, now)
    starved = _is_starved(seen, claims, now + ahead, capacity)
    again = changed + kept.looked_at > 0 or (claims.looked_at > 0 and not starved)
    looks = _looks_to_come(engine, seen, now, ahead, hidden=not again and not (starved and not handing))
    if claims.met_another and not starved:
        looks.append(now + IN_A_MOMENT)
    wake_at = min(looks, default=None)
    claims += kept
    return Tick(claims, wake_at=wake_at, again=again, starved=starved, someone_died=seen.someone_died)


def _with_tasks(engine: Engine, seen: Look, now: datetime, passed: Tick, room: int) -> Tick:
    """Claim tasks that were enqueued, as far as there is `room` beside the plan; none of them is claimed ahead.

    Those of a queue that is paused or full hide the ones that are due later.
    """
    if not _is_due(seen.next_task_at, now):
        return _woken_by(passed, seen.next_task_at)
    tasks = claim_tasks(engine, now, limit=room) if room > 0 else Claims()
    claims = passed.claims
    claims += tasks
    if not tasks.looked_at and room > 0:
        return _woken_by(passed, next_task_after(engine, now))
    taken, wait = len(tasks.runs), len(tasks.runs) >= room
    return replace(passed, again=passed.again or not (taken or wait), tasks_wait=wait, tasks=taken)


def _woken_by(passed: Tick, task_at: datetime | None) -> Tick:
    if task_at is None:
        return passed
    return replace(passed, wake_at=min(filter(None, (passed.wake_at, task_at))))


def _is_starved(seen: Look, claims: Claims, horizon: datetime, capacity: int) -> bool:
    """Whether every worker has a run, and more may be due: the end of the next run is the time to look again."""
    full = len(claims.runs) >= capacity and (claims.passed_over > 0 or len(claims.runs) <= capacity)
    return full and any(_is_due(at, horizon) for at in (seen.next_attempt_at, seen.next_job_at))


def _claimed(
    engine: Engine, seen: Look, now: datetime, ahead: timedelta, capacity: int, room: Room | None, reach: Reach
) -> Claims:
    """Claim promised attempts, then due jobs, each as far as what the first have left goes."""
    claims, horizon = Claims(), now + ahead
    promised = _is_due(seen.next_attempt_at, horizon)
    if promised and capacity + reach.count > 0:
        claims += claim_waiting(engine, now, ahead=ahead, limit=capacity, room=_beside_plan(room), reach=reach)
    left, reach = max(0, capacity - len(claims.runs)), reach.without(len(claims.runs) - capacity)
    if _is_due(seen.next_job_at, horizon) and left + reach.count > 0:
        claims += claim_due(engine, now, ahead=ahead, limit=left, reach=reach)
    if promised and capacity > 0 and room is not None and room.after_plan and not claims.runs:
        claims += claim_waiting(engine, now, ahead=ahead, limit=room.left, room=room)
    return claims


def _handed_over(engine: Engine, seen: Look, now: datetime, ahead: timedelta, handing: Mapping[str, int]) -> Claims:
    """Hand over what executors elsewhere have places for, and promise what is due: the next pass hands that over."""
    claims = Claims()
    for executor, places in handing.items():
        if places > 0 and _is_due(seen.next_attempt_at, now):
            claims += claim_waiting(engine, now, ahead=NO_TIME, limit=places, executor=executor)
        if _is_due(seen.next_job_at, now + ahead):
            claims += claim_due(engine, now, ahead=ahead, limit=MOST_PROMISED, executor=executor)
    return claims


def _beside_plan(room: Room | None) -> Room | None:
    return replace(room, left=0) if room is not None and room.after_plan else room


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
    looks = [at - ahead if at - ahead > now else at for at in _to_come(starts, now)]
    return looks + _to_come([seen.next_pause_end_at], now)


def _to_come(instants: Iterable[datetime | None], now: datetime) -> list[datetime]:
    return [at for at in instants if at is not None and at > now]
