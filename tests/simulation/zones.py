"""Zones: all processes come back with another TIME_ZONE, and what follows it goes on there."""

from datetime import timedelta
from typing import TYPE_CHECKING

from scheduler.models import Job

if TYPE_CHECKING:
    from tests.simulation.world import World

ZONES = {
    "UTC": timedelta(0),
    "Asia/Tokyo": timedelta(hours=9),
    "Asia/Kolkata": timedelta(hours=5, minutes=30),
    "America/Phoenix": timedelta(hours=-7),
}
"""Zones without daylight saving, with what their wall clocks are ahead of UTC."""
HOUR = 3600


def move(world: "World") -> str:
    """A deploy changes TIME_ZONE: every process ends, and some time later one begins with the new zone.

    Mostly soon after a job of a fixed time had its run of the day.
    """
    if world.rng.random() < 0.7:
        _wait_for_a_daily_job(world)
    for node in world.nodes:
        if node.exists:
            node.crash()
    world.move(world.rng.choice([zone for zone in ZONES if zone != world.zone]))
    world.pass_time(world.rng.choice((1, 60, HOUR, 5 * HOUR)))
    return f"TIME_ZONE is {world.zone}, boot {world.boot().name}"


def _wait_for_a_daily_job(world: "World") -> None:
    names = [spec.name for spec in world.specs.values() if spec.daily]
    to_come = Job.objects.filter(name__in=names, wake_at__gt=world.clock.now()).order_by("wake_at")
    slot = to_come.values_list("wake_at", flat=True).first()
    if slot and not world.awake:
        world.boot()
    if slot:
        world.pass_time((slot - world.clock.now()).total_seconds() + 1)
        for node in world.awake:
            node.beat()
            while world.dispatch(node):
                pass
