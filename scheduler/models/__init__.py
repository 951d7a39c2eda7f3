"""The tables: jobs, the run log, live instances."""

from scheduler.models.instance import Instance
from scheduler.models.job import UNPLANNED, Job, JobState
from scheduler.models.run import COUNTED, OPEN, RunLog, Status, Trigger

__all__ = ["COUNTED", "OPEN", "UNPLANNED", "Instance", "Job", "JobState", "RunLog", "Status", "Trigger"]
