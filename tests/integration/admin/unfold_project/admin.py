from django.contrib import admin
from unfold.admin import ModelAdmin

from scheduler.admin import ApiTokenAdminMixin, InstanceAdminMixin, JobAdminMixin, NoticeAdminMixin, RunLogAdminMixin
from scheduler.models import ApiToken, Instance, Job, Notice, RunLog

for model in (Job, RunLog, Instance, ApiToken, Notice):
    admin.site.unregister(model)


@admin.register(Job)
class JobAdmin(JobAdminMixin, ModelAdmin):
    pass


@admin.register(RunLog)
class RunLogAdmin(RunLogAdminMixin, ModelAdmin):
    pass


@admin.register(Instance)
class InstanceAdmin(InstanceAdminMixin, ModelAdmin):
    pass


@admin.register(ApiToken)
class ApiTokenAdmin(ApiTokenAdminMixin, ModelAdmin):
    pass


@admin.register(Notice)
class NoticeAdmin(NoticeAdminMixin, ModelAdmin):
    pass
