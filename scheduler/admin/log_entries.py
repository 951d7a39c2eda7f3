"""Log entries: what was done with many jobs at once, in Django's log of the admin."""

from collections.abc import Sequence

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import router, transaction

from scheduler.engine.db.bulk import insert_values
from scheduler.models import Job

LONGEST_NAME = 200
COLUMNS = ("action_time", "user", "content_type", "object_id", "object_repr", "action_flag", "change_message")


def log_changes(user_id: int | None, jobs: Sequence[Job], done: str) -> None:
    """Write what `log_actions` writes for changes, in a fraction of the time where there are thousands."""
    if len(jobs) < 2:
        LogEntry.objects.log_actions(user_id, jobs, CHANGE, done)  # type: ignore[arg-type]
        return
    using = router.db_for_write(LogEntry)
    of_jobs = ContentType.objects.get_for_model(Job, for_concrete_model=False).pk
    begin = (LogEntry._meta.get_field("action_time").get_default(), user_id, of_jobs)
    rows = [(*begin, str(job.pk), str(job)[:LONGEST_NAME], CHANGE, done) for job in jobs]
    fields = [LogEntry._meta.get_field(name) for name in COLUMNS]
    with transaction.atomic(using=using):
        insert_values(using, fields, rows)
