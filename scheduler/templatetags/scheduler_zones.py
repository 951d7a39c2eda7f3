"""A tag for our own pages: `{% scheduler_zone job %}` is the zone in which the times of a page are said on demand."""

from django import template
from django.conf import settings

from scheduler.admin.times import zone_of
from scheduler.models import Job

register = template.Library()


@register.simple_tag
def scheduler_zone(job: object) -> str:
    """Return the time zone of a job, of the project where a page is of none."""
    return zone_of(job, settings.TIME_ZONE) if isinstance(job, Job) else settings.TIME_ZONE
