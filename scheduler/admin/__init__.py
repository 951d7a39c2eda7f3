"""The Django admin of jobs, runs and instances.

Changes state through `engine/control` only; runs nothing inside a request. The mixins hold everything, so that a
project with another ModelAdmin (django-unfold, say) can put them before its own class.
"""

from scheduler.admin.instances import InstanceAdmin, InstanceAdminMixin
from scheduler.admin.jobs.job_admin import JobAdmin, JobAdminMixin
from scheduler.admin.notices.notice_admin import NoticeAdmin, NoticeAdminMixin
from scheduler.admin.runs.run_admin import RunLogAdmin, RunLogAdminMixin
from scheduler.admin.tokens.token_admin import ApiTokenAdmin, ApiTokenAdminMixin

__all__ = [
    "ApiTokenAdmin",
    "ApiTokenAdminMixin",
    "InstanceAdmin",
    "InstanceAdminMixin",
    "JobAdmin",
    "JobAdminMixin",
    "NoticeAdmin",
    "NoticeAdminMixin",
    "RunLogAdmin",
    "RunLogAdminMixin",
]
