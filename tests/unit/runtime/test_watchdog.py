"""The watchdog starts again what died or hangs, and leaves the rest alone."""

from dataclasses import dataclass

import pytest

from scheduler.runtime.watchdog import HUNG_AFTER, Watchdog


@dataclass
class StubService:
    alive: bool = True
    silent: float = 1.0
    name: str = "dispatcher"
    starts: int = 0

    def is_alive(self):
        return self.alive

    def age(self):
        return self.silent

    def start(self):
        self.starts += 1
        self.alive, self.silent = True, 0.0


@pytest.mark.parametrize(
    ("service", "starts", "said"),
    [
        (StubService(), 0, ""),
        (StubService(alive=False), 1, "died"),
        (StubService(silent=HUNG_AFTER - 1), 0, ""),
        (StubService(silent=HUNG_AFTER + 1), 1, "no sign of life"),
    ],
)
def test_what_died_or_hangs_is_started_once_N1(service, starts, said, caplog):
    healthy = StubService(name="recorder")
    watchdog = Watchdog([healthy, service])
    for _ in range(3):
        watchdog.step()
    assert (service.starts, healthy.starts, watchdog.restarts) == (starts, 0, starts)
    assert said in caplog.text
