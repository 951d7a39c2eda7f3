"""The call as a Django task: it is found by the path of this module."""

from tests.benchmarks.peers.notes import noted

try:
    from django.tasks import task
except ImportError:  # Django before 6.0
    from django_tasks import task


@task()
def noting(due: float) -> None:
    noted(due)


@task()
def nothing() -> None:
    pass
