from django.contrib import admin
from unfold.admin import ModelAdmin

from scheduler.admin import InstanceAdminMixin, JobAdminMixin, RunLogAdminMixin
from scheduler.models import Instance, Job, RunLog

for model in (Job, RunLog, Instance):
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
