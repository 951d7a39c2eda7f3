"""Draw: jobs, policies and moods, at random."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.simulation.spec import Spec

INTERVALS = (2, 10, 30, 60, 90, 300, 3600)
GROUPS = {"serial": 1, "pair": 2}


def draw_times(rng: Random, name: str, now: datetime, **more: Any) -> Spec:
    """Return a spec with a schedule at random."""
    kind = rng.random()
    if kind < 0.2:
        return Spec(name, daily=(rng.randrange(24), rng.randrange(60)), **more)
    interval = timedelta(seconds=rng.choice(INTERVALS))
    if kind < 0.3:
        return Spec(name, interval=interval, from_completion=True, **more)
    anchor = now + timedelta(seconds=rng.randint(-500, 100)) if rng.random() < 0.3 else None
    jitter = rng.choice((0, 0, 0, 1, 5, 30))
    return Spec(name, interval=interval, anchor=anchor, jitter=jitter, **more)


def draw_options(rng: Random) -> dict[str, Any]:
    """Return policy options at random; most jobs have few."""
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["overlap"] = rng.choice(("skip", "queue_one", "allow", "replace"))
        if options["overlap"] == "allow":
            options["max_concurrent"] = rng.choice((1, 2, 3))
    if rng.random() < 0.5:
        options["misfire"] = rng.choice(("run_latest", "skip", "run_all"))
        options["max_catch_up"] = rng.choice((1, 2, 4))
    choices = {
        "grace": (0, 5, 60, 600),
        "catch_up_window": (30, 300),
        "retries": (1, 2, 3),
        "backoff": ([5, 20], [1], None, 60),
        "breaker_threshold": (1, 2, 3, None),
        "breaker_probe_after": (20, 120),
        "on_lost": ("retry", "skip"),
        "rate_limit": ("2/min", "5/10min"),
    }
    options |= {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.25}
    return options


def draw_job(rng: Random, name: str, now: datetime, *, by_code: bool = False) -> Spec:
    """Return a job at random."""
    spec = draw_times(rng, name, now, by_code=by_code)
    spec.options = draw_options(rng)
    spec.most_retries = spec.options.get("retries", 0)
    spec.group = rng.choice(("", "", "", *GROUPS))
    spec.poison = rng.random() < 0.12
    spec.failing = rng.choice((0.0, 0.2, 0.2, 0.7))
    return spec


CALM = {"dispatch": 30, "start": 16, "end": 16, "write": 12, "beat": 4, "look_after": 2, "pass_time": 22}
PEOPLE = {
    "add": 0.6, "edit": 1.5, "edit_by_api": 1.5, "edit_policy": 0.8, "pause": 1.2, "resume": 1.5, "pause_group": 0.6,
    "resume_group": 1.0, "disable": 0.6, "enable": 1.0, "run_by_hand": 2.0, "cancel": 1.0, "reset": 0.7,
    "fill_back": 0.7, "delete": 0.2, "prune": 0.4,
}  # fmt: skip
FAULTS = {
    "crash": 1.0, "boot": 2.0, "boot_elder": 0.4, "freeze": 0.8, "thaw": 1.0, "stop": 0.7, "outage": 0.15,
    "write_in_doubt": 1.0, "claim_in_doubt": 0.5, "stale_claim": 1.0, "refused_claim": 0.5, "clock_forward": 0.3,
    "abandon": 0.4, "time_out": 0.6, "starve": 0.2, "bend_count": 0.2, "lose_run": 0.2, "switch": 0.3,
    "reschedule": 0.3, "forget_dependents": 0.2, "spoil": 0.3, "garble": 0.2, "restore": 0.3, "move": 0.1,
}  # fmt: skip


def draw_mood(rng: Random) -> dict[str, float]:
    """Return how often which steps happen in an episode: some are calm, some are full of people, some of faults."""
    people, faults = rng.choice((0.2, 1.0, 2.5)), rng.choice((0.2, 1.0, 3.0))
    weights = dict(CALM)
    weights |= {name: weight * people for name, weight in PEOPLE.items()}
    weights |= {name: weight * faults for name, weight in FAULTS.items()}
    return weights | ({"clock_back": 0.6} if rng.random() < 0.2 else {})
