"""Deadline: whether the newest deadline of a job that is to succeed by a time of day has passed without a success."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from scheduler.engine.plan_basis import policy_of, schedule_of
from scheduler.engine.views.datetimes import zone_of_schedule
from scheduler.models import Job
from scheduler.schedules import Schedule
from scheduler.schedules.base import Slots
from scheduler.schedules.wallclock import instant_of

DAY, MOMENT = timedelta(days=1), timedelta(microseconds=1)


def missed_deadline(job: Job, began: datetime, now: datetime) -> datetime | None:
    """Return the newest deadline of `succeed_by` that passed without a success; None where there is none.

    Each day has one on which slots come between the deadline before and its own. A success since the first of these
    slots meets it, and ends the problem also where it comes late. Where the schedule has no slots by time, each day has
    a deadline. Slots before `began` do not count. Raises InvalidSchedule when the job cannot be read.
    """
    policy, schedule = policy_of(job), schedule_of(job)
    clock, zone = policy.succeed_by or time(), zone_of_schedule(schedule)
    day = now.astimezone(zone).date()
    day = day if _deadline(day, clock, zone) <= now else day - DAY
    first: datetime | None = _deadline(day - DAY, clock, zone)
    if schedule.slots in (Slots.TIMED, Slots.ONE):
        day, first = _of_newest_slot(schedule, day, clock, zone)
    if first is None or began > first or (policy.starts_at and first < policy.starts_at):
        return None
    return None if job.last_success_at and job.last_success_at >= first else _deadline(day, clock, zone)


def _of_newest_slot(schedule: Schedule, day: date, clock: time, zone: ZoneInfo) -> tuple[date, datetime | None]:
    """Return the day to whose deadline the newest slot before that of a day belongs, and the first slot of the same."""
    slot = schedule.previous_before(_deadline(day, clock, zone))
    if slot is None:
        return day, None
    day = slot.astimezone(zone).date()
    day = day if _deadline(day, clock, zone) > slot else day + DAY
    return day, schedule.next_after(_deadline(day - DAY, clock, zone) - MOMENT)


def _deadline(day: date, clock: time, zone: ZoneInfo) -> datetime:
    return instant_of(zone, datetime.combine(day, clock)).replace(tzinfo=UTC)
