"""The jobs of the rig: what the project registers, and what the checker knows of them. No Django here."""

from dataclasses import dataclass, field
from typing import Any

GROUP = "serial"
GROUP_LIMIT = 1
VISITORS = ("anna", "ben:b", "slow", "fails")
"""Users: of “slow” more happens while its run goes on, and every second run of “fails” fails."""
GUEST = "guest-"
"""Users who come once: what they do later, they do while a run of theirs goes on, or not at all."""
VISITORS_AT_ONCE = 5
WORKERS = 6
"""Workers of each process: so many runs in threads at once."""
MOST_LOST = 3
"""A slot whose process died so often is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One job. `interval` is None for jobs without a grid; `most` is how many runs may go on at once."""

    name: str
    interval: float | None = None
    seconds: float = 0.0
    body: str = "plain"
    most: int = 1
    probe: bool = True
    """Whether it must run again soon after every fault."""
    parents: tuple[str, ...] = ()
    from_completion: bool = False
    cron: str = ""
    """Written so that it is due every `interval` seconds of the clock."""
    visitors: bool = False
    """Whether it runs for users who did something."""
    nightly: tuple[int, int, str] | None = None
    """Hour, minute and time zone of a job that is due once a day."""
    jitter: float = 0.0
    group: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_grid(self) -> bool:
        return self.interval is not None and not self.from_completion


def in_crowd(name: str) -> bool:
    """Return whether a job is one of very many that are due once, at one instant."""
    return name.startswith("burst-")


def backoff_of(spec: Spec) -> list[float]:
    """Return the seconds to wait after the first, second … failure in a row; the last one counts for all others."""
    return list(spec.options.get("backoff", FOR_EVER["backoff"]))


FOR_EVER: dict[str, Any] = {"breaker_threshold": None, "backoff": [0.5, 1]}

STEADY = (
    Spec(name="tick", interval=1),
    Spec(name="short", interval=1, seconds=0.3),
    Spec(name="nap", interval=2, seconds=1.2),
    Spec(name="long", interval=1, seconds=2.5),
    Spec(name="async-short", interval=1, seconds=0.2, body="async"),
    Spec(name="async-long", interval=2, seconds=3, body="async"),
    Spec(name="beside", interval=1, seconds=1.8, most=3, options={"overlap": "allow", "max_concurrent": 3}),
    Spec(name="queue", interval=1, seconds=1.4, options={"overlap": "queue_one"}),
    Spec(name="replace", interval=2, seconds=3, body="patient", options={"overlap": "replace"}),
    Spec(name="fails", interval=2, body="fails"),
    Spec(name="retries", interval=3, body="second", options={"retries": 2}),
    Spec(name="once-at-most", interval=1, seconds=0.8, options={"on_lost": "skip"}),
    Spec(name="from-end", interval=2, seconds=0.3, from_completion=True),
    Spec(name="all-slots", interval=1, seconds=0.1, options={"misfire": "run_all", "max_catch_up": 5}),
    Spec(name="latest-or-none", interval=1, seconds=0.1, options={"misfire": "skip", "grace": 1}),
    Spec(name="jittered", interval=3, seconds=0.1, jitter=1),
    Spec(name="counts", interval=1, seconds=0.1, body="counts"),
    Spec(name="imports", interval=3, seconds=2.4, body="imports"),
    Spec(name="serial-a", interval=2, seconds=0.4, group=GROUP),
    Spec(name="serial-b", interval=2, seconds=0.4, group=GROUP),
    Spec(name="parent", interval=3, seconds=0.2),
    Spec(name="child", parents=("parent",), seconds=0.2),
    Spec(name="times-out", interval=3, seconds=2, options={"timeout": 1}),
    Spec(name="cron", interval=2, cron="*/2 * * * * *"),
    Spec(name="nightly", nightly=(2, 30, "Europe/Berlin"), probe=False),
    Spec(name="catches-up", interval=1, options={"grace": 2}),
    Spec(name="backs-off", interval=1, body="fails", options={"backoff": [2, 3]}),
    Spec(name="guests", interval=1, body="tells", probe=False),
    Spec(name="visitors", body="visits", most=VISITORS_AT_ONCE, visitors=True, probe=False),
    Spec(name="breaks", interval=1, body="fails", probe=False, options={"breaker_threshold": 3}),
)
IN_A_PROCESS = Spec(name="apart", interval=6, seconds=0.3, probe=False, options={"executor": "process"})
HANDED = Spec(
    name="handed", interval=1, seconds=0.3, probe=False, options={"executor": "spool", "handover_timeout": "3s"},
)  # fmt: skip
"""Its runs are handed over, and run where workers take their messages."""

POISON = {
    "base-exception": {},
    "exits": {"on_lost": "retry"},
    "closes-connection": {},
    "closes-socket": {},
    "leaves-transaction": {},
    "huge-log": {},
    "forks": {},
    "never-returns": {"stuck_after": 1, "on_stuck": "abandon", "on_lost": "skip"},
}
"""Tasks that harm whoever runs them, each due once; their policy options."""
POISON_LATER = {"forks": 5}
"""Seconds after the others, one of which ends its process: it must live to see whether its child does."""
