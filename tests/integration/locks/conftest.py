"""A host, and a job of it that is due each minute."""

import pytest

from scheduler.models import Job
from tests.factories import make_job
from tests.integration.locks.host import Host


@pytest.fixture
def host(db: None) -> Host:
    return Host()


@pytest.fixture
def job(host: Host) -> Job:
    return make_job()
