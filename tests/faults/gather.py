"""Gather: the evidence of a round, from its journal, its database and what the faults noted of themselves."""

from typing import TYPE_CHECKING

from tests.faults.evidence import Evidence, Sample

if TYPE_CHECKING:
    from tests.faults.rounds import Round

BEHIND_BY_ONE_CLOCK = 0.02
BEHIND_A_SERVER = 0.25
"""An answer that comes late leaves open by how much: its process takes the earliest time, and is behind for a while."""


def gathered(rig: "Round", earlier: list[Sample], quiet: Sample, healed: float, unclean: list[str]) -> Evidence:
    """Return what there is to judge by, once all has stopped."""
    dead = _deaths(rig)
    return Evidence(
        specs=rig.specs,
        lines=rig.lines(),
        last=rig.database.sample(),
        quiet=quiet,
        earlier=earlier,
        dead=dead,
        frozen=_frozen(rig),
        outages=rig.outages,
        farewells=rig.farewells,
        healed=healed,
        warm=rig.warm,
        clock_moved=rig.clock_moved,
        steps=rig.steps,
        starved=rig.starved,
        off_plan=rig.off_plan,
        stops=rig.stops,
        resets=rig.resets,
        left_open=rig.database.left_open(),
        early=_early(rig),
        behind=BEHIND_A_SERVER if rig.database.port else BEHIND_BY_ONE_CLOCK,
        unclean=[*rig.problems, *unclean, *_crashes(rig)],
    )


def _deaths(rig: "Round") -> dict[int, float]:
    dead = {pid: at for runner in (*rig.runners, *rig.guests) for pid, at in runner.dead.items()}
    return dead | {pid: min(at, dead.get(pid, at)) for pid, at in _own_ends(rig).items()}


def _own_ends(rig: "Round") -> dict[int, float]:
    """Return when processes died by a failpoint, or by their task."""
    return {line.runner: line.mono for line in rig.lines() if line.event == "die"}


def _frozen(rig: "Round") -> set[int]:
    by_signal = {pid for runner in rig.runners for pid in runner.frozen}
    return by_signal | {line.runner for line in rig.lines() if line.event == "freeze"}


def _crashes(rig: "Round") -> list[str]:
    ended = [one for runner in rig.runners for one in runner.ended if one[0] not in _own_ends(rig)]
    return [f"process {pid} ended by itself with exit code {code}" for pid, code in ended]


def _early(rig: "Round") -> float:
    """All clocks are this host's, and nothing is early by it; a file has no clock of its own, and ours may be set."""
    return float("inf") if rig.clock_moved else 0.0
