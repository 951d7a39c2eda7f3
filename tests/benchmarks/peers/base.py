"""A peer: how it is started, and how a call is planned with it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime

WORKERS = 4


class Peer:
    """One scheduler. `lead_seconds` is the time it takes to plan a thousand calls, generously."""

    name = ""
    lead_seconds = 10.0
    bursts = 1
    """How many are measured. One comes after a small one that warms it up; of more, the first one is cold."""
    note = ""

    def start(self) -> None:
        """Make it ready, and let it run."""
        raise NotImplementedError

    def plan(self, due: Sequence[datetime]) -> None:
        """Plan one call of `noted` for each instant."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all it runs."""


class DjangoPeer(Peer):
    """A scheduler that is a Django app; `commands` are the processes it needs."""

    apps: Sequence[str] = ()
    commands: Sequence[Sequence[str]] = ()

    def start(self) -> None:
        os.environ.update(DJANGO_SETTINGS_MODULE="tests.benchmarks.peers.settings", BENCH_APPS=",".join(self.apps))
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "django", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            for command in self.commands
        ]

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
