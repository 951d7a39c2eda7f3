"""People: what they do to jobs, through the public API and behind its back. Each returns what it did, in words."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from scheduler.engine import control
from scheduler.engine.base import Engine
from scheduler.engine.retention.keep import Retention
from scheduler.engine.retention.prune import prune
from scheduler.exceptions import InvalidSchedule, Refused
from scheduler.models import EVERYTHING, Job, RunLog, Status
from scheduler.models.job import JobQuerySet
from scheduler.policy.codec import from_options
from tests.simulation.draw import GROUPS, draw_job, draw_options, draw_times
from tests.simulation.spec import Spec
from tests.simulation.users import RULES
from tests.simulation.world import TASK, World

MOST_JOBS = 6


def add(world: World) -> str:
    """Add a job; one in six waits for others."""
    if Job.objects.count() > MOST_JOBS:
        return ""
    spec = draw_job(world.rng, f"job{len(world.specs)}", world.clock.now())
    others = list(Job.objects.order_by("pk").values_list("name", flat=True))
    if others and world.rng.random() < 0.17:
        parents = tuple(world.rng.sample(others, min(len(others), 2)))
        spec = Spec(spec.name, parents=parents, on=world.rng.choice(("success", "finish")), failing=spec.failing)
    else:
        world.elsewhere.choose(spec)
    world.specs[spec.name] = spec
    control.add_job(spec.name, TASK, spec.schedule(), group=spec.group, **spec.options)
    return f"add {spec}"


def edit(world: World) -> str:
    """Change a schedule and save the job, or write it with `QuerySet.update`."""
    if (job := any_job(world, made_by_people(world))) is None:
        return ""
    new = _new_times(world, job.name)
    if world.rng.random() < 0.5:
        job.schedule = new.schedule()
        job.save()
    else:
        Job.objects.filter(pk=job.pk).update(schedule=new.schedule())
    world.specs[job.name].copy_schedule(new)
    return f"save {new}"


def edit_by_api(world: World) -> str:
    """Change a schedule through the API, which resets a broken job, and wins over the code."""
    if (job := any_job(world)) is None:
        return ""
    new = _new_times(world, job.name)
    control.update_job(job.name, schedule=RULES if new.users else new.schedule())
    world.specs[job.name].copy_schedule(new)
    return f"update {new}"


def _new_times(world: World, name: str) -> Spec:
    """Return a spec with other times; of a job that waits for others, or for users, an edit is no change."""
    spec = world.specs[name]
    return spec if spec.parents or spec.users else draw_times(world.rng, name, world.clock.now())


def edit_policy(world: World) -> str:
    """Give a job other policies."""
    if (job := any_job(world, made_by_people(world))) is None:
        return ""
    spec = world.specs[job.name]
    spec.options = draw_options(world.rng) | world.elsewhere.kept(spec)
    spec.most_retries = max(spec.most_retries, spec.options.get("retries", 0))
    Job.objects.filter(pk=job.pk).update(policy=from_options(spec.options))
    return f"policy of {job.name}: {spec.options}"


def pause(world: World) -> str:
    if (job := any_job(world)) is None:
        return ""
    seconds = world.rng.choice((None, 5, 60, 400))
    control.pause_job(job.name, until=None if seconds is None else world.clock.now() + timedelta(seconds=seconds))
    return f"pause {job.name} for {seconds}"


def resume(world: World) -> str:
    return _to_some_job(world, "resume", control.resume_job, Job.objects.filter(paused_at__isnull=False))


def reset(world: World) -> str:
    return _to_some_job(world, "reset", control.reset_job, Job.objects.broken())


def pause_group(world: World) -> str:
    name, seconds = world.rng.choice((EVERYTHING, *GROUPS)), world.rng.choice((None, 30, 200))
    pause = control.pause_all if name == EVERYTHING else partial(control.pause_group, name)
    pause(until=None if seconds is None else world.clock.now() + timedelta(seconds=seconds))
    return f"pause group {name!r} for {seconds}"


def resume_group(world: World) -> str:
    name = world.rng.choice((EVERYTHING, *GROUPS))
    resumed = control.resume_all() if name == EVERYTHING else control.resume_group(name)
    return f"resume group {name!r}" if resumed else ""


def disable(world: World) -> str:
    return _to_some_job(world, "disable", lambda name: control.update_job(name, enabled=False))


def enable(world: World) -> str:
    off = Job.objects.filter(enabled=False)
    return _to_some_job(world, "enable", lambda name: control.update_job(name, enabled=True), off)


def run_by_hand(world: World) -> str:
    def run(name: str) -> None:
        control.run_now(name, kwargs={"user_id": "somebody"} if world.specs[name].users else None)

    return _to_some_job(world, "run", run)


def fill_back(world: World) -> str:
    """Run the slots of the last minutes again, or for the first time."""
    now, only = world.clock.now(), world.rng.choice(("missing", "failed", "all"))
    start, end = (now - timedelta(seconds=world.rng.choice(choice)) for choice in ((100, 600), (0, 50)))

    def fill(name: str) -> None:
        spec = world.specs[name]
        short = spec.interval is not None and spec.interval < timedelta(seconds=30)
        if spec.has_grid and not short:
            control.backfill(name, start, end, only=only)

    return _to_some_job(world, f"backfill {only} {start:%H:%M:%S}-{end:%H:%M:%S}", fill)


def cancel(world: World) -> str:
    runs = list(RunLog.objects.filter(status__in=(Status.PENDING, Status.RUNNING)).order_by("pk"))
    if not runs:
        return ""
    run = world.rng.choice(runs)
    control.cancel_run(run.pk)
    return f"cancel {run.pk}"


def delete(world: World) -> str:
    """Delete a job that people made; the code's own would come back."""
    return _to_some_job(world, "delete", control.remove_job, made_by_people(world))


def prune_ledger(world: World) -> str:
    """Keep very few rows."""
    world.watcher.pruned = True
    pruned = prune(Engine(), world.clock.now(), retention=Retention(days=1, failed_days=1, runs=3))
    return f"prune {pruned.total}" if pruned.total else ""


def _to_some_job(world: World, words: str, act: Callable[[str], object], among: JobQuerySet | None = None) -> str:
    if (job := any_job(world, among)) is None:
        return ""
    try:
        act(job.name)
    except Refused as refused:
        return f"{words} {job.name}: refused, {refused.code}"
    except InvalidSchedule:
        if job.pk in world.watcher.garbled:
            return f"{words} {job.name}: its schedule cannot be read"
        raise
    return f"{words} {job.name}"


def made_by_people(world: World) -> JobQuerySet:
    return Job.objects.filter(name__in=[name for name, spec in world.specs.items() if not spec.by_code])


def any_job(world: World, among: JobQuerySet | None = None) -> Job | None:
    jobs = list((Job.objects.all() if among is None else among).exclude(name=TASK).order_by("pk"))
    return world.rng.choice(jobs) if jobs else None


ACTS: dict[str, Callable[[World], str]] = {
    "add": add, "edit": edit, "edit_by_api": edit_by_api, "edit_policy": edit_policy, "pause": pause,
    "resume": resume, "pause_group": pause_group, "resume_group": resume_group, "disable": disable, "enable": enable,
    "run_by_hand": run_by_hand, "cancel": cancel, "reset": reset, "fill_back": fill_back, "delete": delete,
    "prune": prune_ledger,
}  # fmt: skip
