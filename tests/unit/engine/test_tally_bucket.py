"""A run that began years after its slot is counted, too."""

from datetime import timedelta

import pytest

from scheduler.engine.db.tally import _run
from scheduler.models import RunLog, Status, Trigger
from scheduler.models.tally import BEYOND
from tests.factories import T0

YEARS = timedelta(days=366 * 20)


@pytest.mark.parametrize(("late", "took"), [(YEARS, timedelta(0)), (timedelta(0), YEARS), (YEARS, YEARS)])
def test_what_took_years_is_in_the_last_bucket_I1(late, took):
    run = RunLog(
        job_id=1, trigger=Trigger.SCHEDULE, attempt=1, scheduled_for=T0, started_at=T0 + late,
        finished_at=T0 + late + took,
    )  # fmt: skip
    (_, _, _, took_within, late_within), *_ = _run(run, Status.SUCCEEDED)
    assert (took_within == BEYOND, late_within == BEYOND) == (took == YEARS, late == YEARS)
