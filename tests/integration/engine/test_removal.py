"""Which jobs can be removed: those that no code brings back."""

import pytest

from scheduler.engine.control import code_owns, remove_job
from scheduler.exceptions import Refused
from scheduler.models import Job
from tests.factories import T0, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "clock")]

OF_CODE = {"source": "app.tasks"}
ORPHANED = {"orphaned_at": T0, "problem": "gone"}


@pytest.mark.parametrize(
    ("name", "task", "columns", "owned"),
    [
        ("task", "task", OF_CODE, True),
        ("task", "gone", OF_CODE, True),
        ("task", "task", OF_CODE | ORPHANED, True),
        ("far", "far", OF_CODE, True),
        ("far", "far", OF_CODE | ORPHANED, False),
        ("gone", "task", OF_CODE, False),
        ("task", "task", {}, False),
    ],
    ids=[
        "its code is here",
        "its code is here, and its task another",
        "its code is here again",
        "its code is elsewhere",
        "its code is gone",
        "its code is gone, and its task another",
        "people made it",
    ],
)
def test_the_code_owns_a_job_while_it_would_bring_it_back(name, task, columns, owned):
    job = make_job(name, task=task, columns=columns)
    assert code_owns(job) is owned
    if not owned:
        remove_job(name)
        assert not Job.objects.exists()
        return
    with pytest.raises(Refused, match=r"app\.tasks") as refused:
        remove_job(name)
    assert refused.value.code == "code_owned"
    assert Job.objects.exists()
