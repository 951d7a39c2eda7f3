"""Jobs that wait for others, and how the tests have them and their parents start and end."""

from scheduler.models import Status
from scheduler.schedules import AfterJobs, Every
from tests.factories import at, claim_at, finish, make_engine, make_job


def parents(*names, every=60):
    return [make_job(name, Every(seconds=every)) for name in names]


def child(on="success", *names, **options):
    return link("child", AfterJobs(*(names or ("extract",)), on=on), **options)


def link(name, schedule, **options):
    """Make a job that waits for others, planned at T0 by the first passes after its creation."""
    job = make_job(name, schedule, planned_at=None, **options)
    due(make_engine(), 0)
    return job


def end_all(engine, seconds, status=Status.SUCCEEDED):
    """Start what is due and end it; return the names of what started."""
    started = claim_at(engine, at(seconds)).runs
    for claimed in started:
        finish(engine, claimed, at(seconds), status)
    return sorted(claimed.job.name for claimed in started)


def end_child(engine, seconds, status=Status.SUCCEEDED):
    """Start the child, which is due once it is planned, and end it."""
    (claimed,) = due(engine, seconds)
    assert claimed.job.name == "child"
    finish(engine, claimed, at(seconds), status)


def due(engine, seconds):
    """Return what starts once the plans are up to date."""
    started = []
    for _ in range(5):
        started += claim_at(engine, at(seconds)).runs
    return started
