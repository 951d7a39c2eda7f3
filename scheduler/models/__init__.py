"""The tables: jobs, the run log, live instances."""

from scheduler.models.environment import Environment
from scheduler.models.group import EVERYTHING, Group
from scheduler.models.instance import Instance
from scheduler.models.job import UNPLANNED, Job, JobState
from scheduler.models.run import COUNTED, OPEN, RunLog, Status, Trigger

__all__ = [
    "COUNTED",
    "EVERYTHING",
    "OPEN",
    "UNPLANNED",
    "Environment",
    "Group",
    "Instance",
    "Job",
    "JobState",
    "RunLog",
    "Status",
    "Trigger",
]
