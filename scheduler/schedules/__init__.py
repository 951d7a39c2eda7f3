"""When jobs are due: pure values that answer "what is the next slot after this instant?"."""

from scheduler.schedules.activity import OnActivity
from scheduler.schedules.base import Schedule, Slots
from scheduler.schedules.calendar import DailyAt, Monthly, Weekly
from scheduler.schedules.codec import from_dict, parse, parse_text
from scheduler.schedules.cron import Cron
from scheduler.schedules.duration import format_duration, parse_duration
from scheduler.schedules.every import Every
from scheduler.schedules.kinds import dependent_kinds, interval_kinds
from scheduler.schedules.linked import AfterJobs, Manual, refuse_cycle
from scheduler.schedules.once import Once

__all__ = [
    "AfterJobs",
    "Cron",
    "DailyAt",
    "Every",
    "Manual",
    "Monthly",
    "OnActivity",
    "Once",
    "Schedule",
    "Slots",
    "Weekly",
    "dependent_kinds",
    "format_duration",
    "from_dict",
    "interval_kinds",
    "parse",
    "parse_duration",
    "parse_text",
    "refuse_cycle",
]
