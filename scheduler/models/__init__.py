"""The tables: jobs, the run log, live instances, what users did."""

from scheduler.models.activity import Activity, EntryState
from scheduler.models.environment import Environment
from scheduler.models.group import EVERYTHING, Group
from scheduler.models.instance import Instance
from scheduler.models.job import UNPLANNED, Job, JobState
from scheduler.models.run import COUNTED, OPEN, PATIENT, RunLog, Status, Trigger

__all__ = [
    "COUNTED",
    "EVERYTHING",
    "OPEN",
    "PATIENT",
    "UNPLANNED",
    "Activity",
    "EntryState",
    "Environment",
    "Group",
    "Instance",
    "Job",
    "JobState",
    "RunLog",
    "Status",
    "Trigger",
]
