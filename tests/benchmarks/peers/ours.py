"""This project, beside its peers: a thread in the process that also plans."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count

from tests.benchmarks import project
from tests.benchmarks.peers.base import Peer
from tests.benchmarks.peers.notes import noted


class Ours(Peer):
    name = "django-inprocess-scheduler"
    lead_seconds = 4.0
    bursts = 20

    def start(self) -> None:
        project.setup()
        project.create_tables()
        from scheduler import register
        from scheduler.runtime.runner import Runner

        register("noted")(noted)
        self._number = count()
        self._runner = Runner("benchmark")
        self._runner.start()
        project.wait_until(lambda: self._runner.member.joined)

    def plan(self, due: Sequence[datetime]) -> None:
        from scheduler.models import Job
        from scheduler.schedules import Once

        jobs = [project.planned(f"job {next(self._number)}", Once(at), at, "noted") for at in due]
        for job, at in zip(jobs, due, strict=True):
            job.kwargs = {"due": at.timestamp()}
        Job.objects.bulk_create(jobs)
        self._runner.dispatching.wake()  # as `add_job` does

    def stop(self) -> None:
        self._runner.stop()
