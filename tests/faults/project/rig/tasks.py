"""The tasks of the rig. Their bodies say in the journal when they start and how they end."""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from threading import Event
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from scheduler import (
    AfterJobs,
    Cron,
    DailyAt,
    Every,
    Manual,
    OnActivity,
    Once,
    RunStopped,
    current_run,
    register,
    schedule_user_task,
)
from scheduler.models import Group
from tests.faults import jobs
from tests.faults.timing import mono, wall

from . import poison
from .journal import append, note


class Broken(Exception):
    """What failing tasks raise."""


def plain(seconds: float) -> Callable[[], Any]:
    def task() -> None:
        note("start")
        Event().wait(seconds)
        note("end")

    return task


def asynchronous(seconds: float) -> Callable[[], Any]:
    async def task() -> None:
        note("start")
        await asyncio.sleep(seconds)
        note("end")

    return task


def patient(seconds: float) -> Callable[[], Any]:
    """Stops when asked to."""

    def task() -> None:
        note("start")
        run = current_run()
        assert run is not None
        for _ in range(int(seconds * 20)):
            if run.stop_requested:
                note("stopped")
            run.check_stop()
            Event().wait(0.05)
        note("end")

    return task


def fails(_: float) -> Callable[[], Any]:
    def task() -> None:
        note("start")
        note("fail")
        raise Broken("as planned")

    return task


def second(_: float) -> Callable[[], Any]:
    """Fails at the first attempt and succeeds later."""

    def task() -> None:
        note("start")
        run = current_run()
        assert run is not None
        if run.attempt == 1:
            note("fail")
            raise Broken("the first attempt")
        note("end")

    return task


def counts(seconds: float) -> Callable[[], Any]:
    """Counts its successes in the state that its job keeps."""

    def task() -> None:
        note("start")
        Event().wait(seconds)
        run = current_run()
        assert run is not None
        run.state["n"] = run.state.get("n", 0) + 1
        note("end")

    return task


def imports(seconds: float) -> Callable[[], Any]:
    """Saves a cursor as it goes; once its run is not its own any more, it is told so."""

    def task() -> None:
        note("start")
        run = current_run()
        assert run is not None
        try:
            for _ in range(8):
                run.state["cursor"] = run.state.get("cursor", 0) + 1
                run.save()
                Event().wait(seconds / 8)
        except Exception as error:  # a database that is away fails the run
            note("stopped" if isinstance(error, RunStopped) else "fail")
            raise
        note("end")

    return task


def queries(seconds: float) -> Callable[[], Any]:
    """Uses every database, as most tasks do."""

    def task() -> None:
        note("start")
        for alias in connections:
            Group.objects.using(alias).count()
        Event().wait(seconds)
        note("end")

    return task


def visits(_: float) -> Callable[..., Any]:
    """Runs for a user."""

    async def task(user_id: str, device_id: None, agent_id: None) -> bool:
        note("start", user=user_id)
        run = current_run()
        assert run is not None
        odd = run.scheduled_for.microsecond % 2 == 1
        if user_id.startswith(jobs.GUEST) and odd:
            await sync_to_async(tell)(user_id)
        await asyncio.sleep(1.5 if user_id == "slow" else 0.1)
        failed = user_id == "fails" and odd
        note("fail" if failed else "end", user=user_id)
        return not failed

    return task


def tells(_: float) -> Callable[[], Any]:
    """Tells what users do, as views would."""

    def task() -> None:
        note("start")
        second = int(wall())
        for user in (jobs.VISITORS[second % len(jobs.VISITORS)], "slow", f"{jobs.GUEST}{second}"):
            tell(user)
        note("end")

    return task


def tell(user: str) -> None:
    """Tell that a user did something, and write down when that is certain to be noted."""
    began = mono()
    with suppress(Exception):  # a database that is away: a view would show its error
        schedule_user_task("visitors", user)
        append("told", user=user, began=began)


BODIES: dict[str, Callable[[float], Callable[..., Any]]] = {
    "visits": visits,
    "tells": tells,
    "queries": queries,
    "plain": plain,
    "async": asynchronous,
    "patient": patient,
    "fails": fails,
    "second": second,
    "counts": counts,
    "imports": imports,
}


def schedule_of(spec: jobs.Spec) -> Any:
    if spec.visitors:
        return OnActivity(1, timeout=10, task_ttl="36000d", max_retries=1000, dimensions=1)
    if spec.parents:
        return AfterJobs(*spec.parents)
    if spec.cron:
        return Cron(spec.cron)
    if spec.nightly:
        hour, minute, timezone = spec.nightly
        return DailyAt(hour=hour, minute=minute, timezone=timezone)
    return Every(seconds=spec.interval or 0, jitter=spec.jitter, from_completion=spec.from_completion)


def load(order: dict[str, Any]) -> None:
    """Register what the controller asks for: the steady jobs but `without`, poison, and a burst at one instant."""
    register("crowd", schedule=Manual())(plain(0.0))
    specs = [*jobs.STEADY, *([jobs.IN_A_PROCESS] if order.get("apart") else [])]
    if order.get("handed"):
        import_module("rig.spool")
        specs.append(jobs.HANDED)
    for spec in specs if order.get("steady", True) else []:
        if spec.name not in order.get("without", ()):
            options = {} if spec.visitors else {**jobs.FOR_EVER, **spec.options}
            register(spec.name, schedule=schedule_of(spec), group=spec.group, **options)(
                BODIES[spec.body](spec.seconds)
            )
    at = datetime.fromisoformat(order["at"]) if "at" in order else None
    for name in order.get("poison", ()):
        due = at + timedelta(seconds=jobs.POISON_LATER.get(name, 0))
        register(name, schedule=Once(due), breaker_threshold=None, **jobs.POISON[name])(poison.TASKS[name])
    for number in range(order.get("burst", 0)):
        register(f"burst-{number:05}", schedule=Once(at), breaker_threshold=None)(plain(0.0))
    for name, options in order.get("jobs", {}).items():
        seconds, body = options.pop("seconds", 0.0), options.pop("body", "plain")
        register(name, **options)(BODIES[body](seconds))


load(json.loads(os.environ.get("FAULTS_ORDER", "{}")))
