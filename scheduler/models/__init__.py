"""The tables: jobs, the run log, live instances, what users did, tokens of the API."""

from scheduler.models.activity import Activity, EntryState
from scheduler.models.api_token import ApiToken, Scope
from scheduler.models.day_total import DayTotal
from scheduler.models.environment import Environment
from scheduler.models.fields import LONG_AGO
from scheduler.models.group import ALL_GROUPS, EVERYTHING, Group, TakenGroups, in_groups
from scheduler.models.idempotency_key import IdempotencyKey
from scheduler.models.instance import Instance
from scheduler.models.job import Job
from scheduler.models.job_columns import AT_ONCE
from scheduler.models.job_event import EventKind, JobEvent
from scheduler.models.job_state import JobState
from scheduler.models.job_watch import JobWatch
from scheduler.models.notice import Notice, NoticeChannel, NoticeDelivery, Told
from scheduler.models.run import FAILURES, OPEN, RAN, RunLog, Status, Trigger
from scheduler.models.run_key import RunKey
from scheduler.models.tally import Tally

__all__ = [
    "ALL_GROUPS",
    "AT_ONCE",
    "EVERYTHING",
    "FAILURES",
    "LONG_AGO",
    "OPEN",
    "RAN",
    "Activity",
    "ApiToken",
    "DayTotal",
    "EntryState",
    "Environment",
    "EventKind",
    "Group",
    "IdempotencyKey",
    "Instance",
    "Job",
    "JobEvent",
    "JobState",
    "JobWatch",
    "Notice",
    "NoticeChannel",
    "NoticeDelivery",
    "RunKey",
    "RunLog",
    "Scope",
    "Status",
    "TakenGroups",
    "Tally",
    "Told",
    "Trigger",
    "in_groups",
]
