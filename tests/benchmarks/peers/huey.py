"""huey: a consumer with four threads beside a SQLite file of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from huey import SqliteHuey

from tests.benchmarks.peers.base import WORKERS, Peer
from tests.benchmarks.peers.notes import noted

huey = SqliteHuey(filename=str(Path(os.environ.get("BENCH_FOLDER", ".")) / "huey.sqlite3"), results=False)
call = huey.task()(noted)


class Huey(Peer):
    name = "huey, SQLite"
    note = "looks once a second; no run log"

    def start(self) -> None:
        script = (
            "from huey.consumer import Consumer; from tests.benchmarks.peers.huey import huey;"
            f" Consumer(huey, workers={WORKERS}, periodic=False, max_delay=0.5, scheduler_interval=1).run()"
        )
        self._process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)

    def plan(self, due: Sequence[datetime]) -> None:
        for at in due:
            call.schedule(args=(at.timestamp(),), eta=at)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
