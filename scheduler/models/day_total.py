"""DayTotal: what retention has removed from the ledger, in totals of a day, so that pictures stay true."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduler.models.fields import BigCountField, BigField, CountField, ShortTextField
from scheduler.models.primary import PrimaryQuerySet
from scheduler.models.tally import BEYOND, NOT_MEASURED

if TYPE_CHECKING:
    _DateField = models.DateField[Any, Any]
else:
    _DateField = models.DateField

DAY_TOOK_MS = (
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000,
    15_000, 20_000, 30_000, 60_000, 90_000, 120_000, 180_000, 300_000, 420_000, 600_000, 900_000, 1_200_000, 1_800_000,
    2_700_000, 3_600_000, 5_400_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, BEYOND,
)  # fmt: skip
"""Bounds of the buckets of durations, in milliseconds: close enough together for a middle of a day."""
DAY_KEY = ("job_id", "day", "status", "took_within")
DAY_AMOUNTS = ("count", "took")


class DayTotal(models.Model):
    """How many runs and slots of one job, day and status are gone from the ledger, in one bucket of durations.

    `day` is that of the slot in the project's time zone. `status` is that of the ledger, or `errors`. The bounds stand
    in the rows, as those of `Tally` do, and no constraint binds the row to its job.
    """

    pk = models.CompositePrimaryKey(*DAY_KEY)
    job_id = BigField(_("job"))
    day = _DateField(_("day"))
    status = ShortTextField(_("status"), max_length=10)
    took_within = CountField(_("bound of the duration, in milliseconds"), default=NOT_MEASURED)
    count = BigCountField(_("how many"), default=0)
    took = BigCountField(_("sum of the durations, in microseconds"), default=0)

    objects = models.Manager.from_queryset(PrimaryQuerySet["DayTotal"])()

    class Meta:
        verbose_name = _("total of a day")
        verbose_name_plural = _("totals of days")
        base_manager_name = "objects"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job_id} {self.day} {self.status} {self.count}"
