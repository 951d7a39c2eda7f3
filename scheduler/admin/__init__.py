"""The Django admin of jobs, runs and instances.

Changes state through `engine/control` only; runs nothing inside a request. The mixins hold everything, so that a
project with another ModelAdmin (django-unfold, say) can put them before its own class.
"""

from scheduler.admin.instance import InstanceAdmin, InstanceAdminMixin
from scheduler.admin.job import JobAdmin, JobAdminMixin
from scheduler.admin.run import RunLogAdmin, RunLogAdminMixin

__all__ = ["InstanceAdmin", "InstanceAdminMixin", "JobAdmin", "JobAdminMixin", "RunLogAdmin", "RunLogAdminMixin"]
