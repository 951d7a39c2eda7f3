"""Once: runs of a registered task that need no job of its own, several at once, moved and cancelled by a key."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async

from scheduler.arguments import checked_flag, checked_instant, checked_key, checked_kwargs, checked_text
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.base import Engine
from scheduler.engine.control.calls import refuse_wrong_templates
from scheduler.engine.control.runs import cancel_run
from scheduler.engine.db.transactions import write_transaction
from scheduler.engine.tasks.carriers import Carrier
from scheduler.engine.tasks.enqueue import Waiting, put
from scheduler.engine.tasks.keys import put_under, waiting_under
from scheduler.exceptions import InvalidOption
from scheduler.models import Job, RunLog
from scheduler.models.carriers import ONE_OFF_PREFIX, ONE_OFFS
from scheduler.models.primary import locked
from scheduler.policy import Policy
from scheduler.policy.executor import executor_named
from scheduler.policy.overlap import Overlap
from scheduler.registry import Task, registry
from scheduler.safetext import shown
from scheduler.schedules import parse_duration
from scheduler.schedules.linked import NAME_LENGTH

Delay = timedelta | str | float
"""A time from now: a timedelta, text such as `1h30m`, or seconds."""
UNLIMITED = 1_000_000
"""Runs of one task at once: groups are limited, these are not."""
OPTIONS = (
    "retries", "backoff", "on_lost", "timeout", "stuck_after", "on_stuck", "render_kwargs", "executor",
    "executor_options",
)  # fmt: skip
"""Options of the task that hold for these runs, too."""


def run_once(
    task: str,
    kwargs: Mapping[str, Any] | None = None,
    *,
    at: datetime | None = None,
    in_: Delay | None = None,
    key: str | None = None,
    replace: bool = True,
    actor: str = "",
) -> RunLog:
    """Promise one run of a registered task, in the transaction of the caller; returns its row, still pending.

    It starts `at` an instant (aware), `in_` a time from now, or at once; `kwargs` replace those of the task. While a
    run waits under the same `key` of the task, that one is moved and given the new arguments; with `replace=False` it
    is returned as it is. Raises UnknownTask, and InvalidOption for wrong arguments, or a task that is handed over.
    """
    carried = registry.get(task)
    own = checked_kwargs(carried.kwargs if kwargs is None else kwargs)
    carried.refuse_call(own)
    refuse_wrong_templates(carried.policy, own)
    checked_text("actor", actor)
    checked_flag("replace", replace)
    using, now, carrier = Engine().using, SYSTEM_CLOCK.now(), _carrier_of(carried)
    waiting = Waiting(kwargs=own, due_at=_due_at(at, in_, now), priority=carried.priority, actor=actor[:150])
    if key is None:
        run = put(using, carrier, waiting, now)
    else:
        run, _ = put_under(using, carrier, checked_key("key", key), waiting, now, replace=replace)
    run._state.adding, run._state.db = False, using
    return run


async def arun_once(
    task: str,
    kwargs: Mapping[str, Any] | None = None,
    *,
    at: datetime | None = None,
    in_: Delay | None = None,
    key: str | None = None,
    replace: bool = True,
    actor: str = "",
) -> RunLog:
    """`run_once` for async views. Its row has no job: ask for that by `job_id`."""
    return await sync_to_async(run_once)(task, kwargs, at=at, in_=in_, key=key, replace=replace, actor=actor)


def cancel_once(task: str, key: str, *, actor: str = "") -> RunLog | None:
    """Cancel the run that waits under a key of a task; returns its row, None where none waits.

    One that has begun goes on: `cancel_run` asks it to stop. The task need not be registered any more. Raises
    InvalidOption.
    """
    using = Engine().using
    name = f"{ONE_OFF_PREFIX}{checked_text('task', task)}"
    checked_key("key", key)
    checked_text("actor", actor)
    job_id = Job.objects.using(using).filter(name=name, source=ONE_OFFS).values_list("pk", flat=True).first()
    if job_id is None:
        return None
    with write_transaction(using):
        run = locked(waiting_under(using, job_id, key)).first()  # locked, it cannot begin any more
        return None if run is None else cancel_run(run.pk, actor=actor)


async def acancel_once(task: str, key: str, *, actor: str = "") -> RunLog | None:
    """`cancel_once` for async views."""
    return await sync_to_async(cancel_once)(task, key, actor=actor)


def _carrier_of(task: Task) -> Carrier:
    """Return what the job is made of that carries these runs of a task; raises InvalidOption where none can."""
    name, executor = f"{ONE_OFF_PREFIX}{task.name}", executor_named(task.policy.executor)
    if executor.hands_over:
        text = f"The runs of {task.name!r} are handed over to {executor.name!r}; run_once starts runs here only."
        raise InvalidOption(text, field="task")
    if len(name) > NAME_LENGTH:
        most = NAME_LENGTH - len(ONE_OFF_PREFIX)
        raise InvalidOption(f"The name {shown(task.name)} is too long for run_once, which takes {most} characters.")
    options = {option: getattr(task.policy, option) for option in OPTIONS}
    policy = Policy(overlap=Overlap.ALLOW, max_concurrent=UNLIMITED, breaker_threshold=None, **options)
    return Carrier(
        name=name, task=task.name, source=ONE_OFFS, policy=policy, group=task.group, description=task.description
    )


def _due_at(at: datetime | None, in_: Delay | None, now: datetime) -> datetime | None:
    if at is not None and in_ is not None:
        raise InvalidOption("at and in_ are both given; give one of them, or none for a run at once.")
    if in_ is None:
        return None if at is None else checked_instant("at", at)
    try:
        return now + parse_duration(in_, field="in_")
    except (ValueError, TypeError, OverflowError) as error:
        text = f"in_ is {shown(in_)}; write a timedelta, seconds or text such as '1h30m'."
        raise InvalidOption(text) from error
