"""Strangers: what others do to the tables past everything of ours. A sweep mends it, at most a lease later;
what it cannot mend costs only itself."""

from collections.abc import Callable
from typing import Any

from django.db import connection

from scheduler.models import Job, RunLog
from scheduler.models.stored import write_schedule
from tests.simulation.draw import draw_times
from tests.simulation.people import any_job, made_by_people
from tests.simulation.world import World

GARBLED = '{"type": "moon", "phase": "full"}'
SPOILED: dict[str, tuple[str | float, ...]] = {
    "overridden_fields": ("null", "7", '{"schedule": 1}', "[[]]"),
    "state": ("7", "[[1]]"),
    "wake_at": ("soon", 12.5),
    "next_run_at": ("soon", 12.5),
    "last_run_at": ("soon", 7),
    "paused_at": ("soon",),
}
"""Columns of a job, each with values that SQLite takes and that are none: JSON of a wrong shape, and no instants."""


def switch(world: World) -> str:
    """Somebody enables or disables a job in SQL: its plan stays as it was."""
    if (job := any_job(world, made_by_people(world))) is None:
        return ""
    _write(world, job, enabled=not job.enabled)
    return f"SQL: {job.name} is {'off' if job.enabled else 'on'}"


def reschedule(world: World) -> str:
    """Somebody changes a schedule in SQL, and leaves the plan that the old one made."""
    job = any_job(world, made_by_people(world))
    if job is None or not (world.specs[job.name].interval or world.specs[job.name].daily):
        return ""
    new = draw_times(world.rng, job.name, world.clock.now())
    _write(world, job, schedule=write_schedule(new.schedule()))
    world.specs[job.name].copy_schedule(new)
    return f"SQL: {new}"


def _write(world: World, job: Job, **columns: Any) -> None:
    names = ", ".join(f"{name} = %s" for name in columns)
    world.watcher.stale.add(job.pk)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_job SET {names} WHERE id = %s", [*columns.values(), job.pk])


def forget_dependents(world: World) -> str:
    """A job does not know any more that others wait for it."""
    parents = {name for spec in world.specs.values() for name in spec.parents}
    if (job := any_job(world, Job.objects.filter(name__in=parents))) is None:
        return ""
    _write(world, job, has_dependents=False)
    return f"SQL: {job.name} forgets who waits for it"


def bend_count(world: World) -> str:
    """A job counts one living run too many, as after a restored dump."""
    job = world.rng.choice(list(Job.objects.order_by("pk")))
    world.watcher.bent.add(job.pk)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET active_runs = active_runs + 1 WHERE id = %s", [job.pk])
    return f"SQL: bend the count of {job.name}"


def lose_run(world: World) -> str:
    """The row of a living run is deleted: its job counts it still, and its handler goes on."""
    runs = list(RunLog.objects.living().order_by("pk").select_related("job"))
    if not runs:
        return ""
    run = world.rng.choice(runs)
    world.watcher.forget(run.pk)
    world.watcher.bent.add(run.job_id)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM scheduler_runlog WHERE id = %s", [run.pk])
    return f"SQL: delete run {run.pk} of {run.job.name}"


def spoil(world: World) -> str:
    """A column of one job, or of an attempt that is promised, holds what cannot be read."""
    if (job := any_job(world)) is None:
        return ""
    attempt = RunLog.objects.waiting().filter(job=job).order_by("pk").first()
    column = world.rng.choice([*SPOILED, *(["due_at"] if attempt else [])])
    world.watcher.spoiled.add(job.name)
    if column == "due_at":
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_runlog SET due_at = 'soon' WHERE id = %s", [attempt.pk])
    else:
        _write(world, job, **{column: world.rng.choice(SPOILED[column])})
    return f"SQL: spoil {column} of {job.name}"


def garble(world: World) -> str:
    """A schedule or a policy becomes what no process can read."""
    job = any_job(world, made_by_people(world))
    if job is None or not (world.specs[job.name].interval or world.specs[job.name].daily):
        return ""
    world.watcher.garbled.add(job.pk)
    world.watcher.spoiled.add(job.name)
    _write(world, job, schedule=GARBLED)
    return f"SQL: garble {job.name}"


def restore(world: World) -> str:
    """Somebody writes back what was garbled."""
    for job in Job.objects.filter(pk__in=world.watcher.garbled).order_by("pk"):
        _write(world, job, schedule=write_schedule(world.specs[job.name].schedule()))
    return "SQL: restore what was garbled" if world.watcher.garbled else ""


ACTS: dict[str, Callable[[World], str]] = {
    "switch": switch, "reschedule": reschedule, "forget_dependents": forget_dependents, "bend_count": bend_count,
    "lose_run": lose_run, "spoil": spoil, "garble": garble, "restore": restore,
}  # fmt: skip
