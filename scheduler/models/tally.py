"""Tally: how often what has come of the runs and slots of a job, in counters that only grow."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import BigCountField, BigField, CountField, ShortTextField
from scheduler.models.primary import PrimaryQuerySet

GONE = 0
"""Instead of a job: totals of jobs that have been deleted."""
GONE_AND_FOLDED = -1
"""Those of deleted jobs that had no label of their own in the metrics."""
LAST_WITH_LABEL = -2
"""Its counts are no totals but borders: each the id of the last job with a label, its cause the limit it holds for."""
WITH_ERRORS = "errors"
"""The status of runs that succeeded and reported errors."""
NOT_MEASURED = 0
BEYOND = 2_147_483_647
"""Stands for a bound above the highest one."""
TOOK_MS = (100, 1000, 5000, 15_000, 60_000, 300_000, 900_000, 3_600_000, BEYOND)
"""Bounds of the buckets of durations, in milliseconds."""
LATE_MS = (5, 50, 250, 1000, 5000, 15_000, 60_000, 300_000, 3_600_000, 86_400_000, BEYOND)
"""Bounds of the buckets of start delays, in milliseconds."""
KEY = ("job_id", "status", "cause", "took_within", "late_within")
AMOUNTS = ("count", "took", "late")


class Tally(models.Model):
    """What was counted of one job, one status and one cause, in one pair of histogram buckets.

    `status` is that of the ledger, or `errors`. `cause` is the trigger of a run, and for skipped slots the kind of
    reason. No constraint binds the row to its job: totals outlive it. The bounds stand in the rows, so that a release
    with other buckets reads what this one counted.
    """

    pk = models.CompositePrimaryKey(*KEY)
    job_id = BigField(_("job"))
    status = ShortTextField(_("status"), max_length=10)
    cause = ShortTextField(_("cause"), max_length=20, blank=True, default="")
    took_within = CountField(_("bound of the duration, in milliseconds"), default=NOT_MEASURED)
    late_within = CountField(_("bound of the start delay, in milliseconds"), default=NOT_MEASURED)
    count = BigCountField(_("how many"), default=0)
    took = BigCountField(_("sum of the durations, in microseconds"), default=0)
    late = BigCountField(_("sum of the start delays, in microseconds"), default=0)

    objects = models.Manager.from_queryset(PrimaryQuerySet["Tally"])()

    class Meta:
        verbose_name = _("tally")
        verbose_name_plural = _("tallies")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job_id} {self.status} {self.cause} {self.count}"
