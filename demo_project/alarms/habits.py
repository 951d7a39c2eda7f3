"""How the jobs of the demo have behaved in the past that it is given: how long they took, and what went wrong."""

from dataclasses import dataclass
from datetime import timedelta

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Failure:
    """A way to fail."""

    kind: str
    """The class, with its module, as a run keeps it."""
    error: str


@dataclass(frozen=True, slots=True)
class Habit:
    """How often a job runs, how long it takes as a rule, and how often it fails."""

    job: str
    seconds: float
    """Half of the oldest runs take less."""
    spread: float
    """Sigma of the logarithm of the durations."""
    kept: timedelta
    """So far back go the rows of the run log; the days before have totals."""
    steps: tuple[float, ...] = ()
    """Seconds from a slot to the next, by chance; none: as the schedule says."""
    fails: float = 0.0
    drift: float = 1.0
    """So many times as long as at first the newest runs take."""
    skips_gaps: bool = False
    """Whether slots without a process are missed; else one run catches up."""
    result: str = ""


HABITS = (
    Habit("cleanup_old_events", 3.8, 0.3, 30 * DAY, drift=3.2, fails=0.04, result="41"),
    Habit("morning_report", 1.2, 0.35, 30 * DAY, fails=0.06, result="7 critical events since yesterday"),
    Habit("morning_brief", 5.6, 0.12, 30 * DAY, fails=0.07, result="The night was quiet."),
    Habit("look_for_warnings", 5.4, 0.1, 6 * DAY, (300,), fails=0.01, skips_gaps=True, result="The press."),
    Habit("ask_for_critical_events", 5.3, 0.1, 2 * DAY, (120,), fails=0.012, result="There are 3 critical events."),
    Habit("count_by_source", 0.018, 0.5, 2 * HOUR, (20,), fails=0.002, result="boiler: 834, chiller: 851"),
    Habit("poll_sensors", 0.31, 0.25, 2 * HOUR, (15,), fails=0.004, result="3"),
    Habit("heartbeat", 0.002, 0.4, HOUR, (5,), result="alive"),
    Habit("scan_archive", 25.1, 0.008, 3 * HOUR, (30,), fails=0.005, drift=1.25, result="25 parts scanned"),
    Habit("notify_on_call", 0.008, 0.6, 2 * HOUR, (10, 15, 20, 60), fails=0.55, result="delivered"),
)

MODULES = {"OperationalError": "django.db.utils", "ServiceError": "scheduler.contrib.sessions.client"}
"""Where the classes come from that Python does not have."""
_CALL = """Traceback (most recent call last):
  File "/srv/plant/alarms/tasks.py", line {line}, in {task}
    {code}
  File "/srv/plant/lib/{module}.py", line {deeper}, in {function}
    raise {kind}({words!r})
{kind}: {words}
"""


def _failure(kind: str, task: str, line: int, code: str, place: tuple[str, int, str], words: str) -> Failure:
    module, deeper, function = place
    error = _CALL.format(
        line=line, task=task, code=code, module=module, deeper=deeper, function=function, kind=kind, words=words
    )
    return Failure(f"{MODULES.get(kind, 'builtins')}.{kind}", error)


_ASSISTANT = (
    _failure("ServiceError", "send_prompt", 88, "answer = service.ask(session, prompt)",
             ("assistant", 41, "ask"), "the assistant answered 503: too many sessions"),
    _failure("TimeoutError", "send_prompt", 88, "answer = service.ask(session, prompt)",
             ("assistant", 57, "read"), "no answer within 20 s"),
)  # fmt: skip
_DATABASE = (
    _failure("OperationalError", "execute", 89, "return self.cursor.execute(sql, params)",
             ("database", 120, "execute"), "database is locked"),
)  # fmt: skip
FAILURES = {
    "cleanup_old_events": _DATABASE,
    "morning_report": _DATABASE,
    "morning_brief": _ASSISTANT,
    "look_for_warnings": _ASSISTANT,
    "ask_for_critical_events": _ASSISTANT,
    "count_by_source": _DATABASE,
    "poll_sensors": (
        _failure("TimeoutError", "poll_sensors", 44, "readings = await asyncio.gather(*reading)",
                 ("sensors", 23, "read"), "the chiller did not answer in time"),
        _failure("ValueError", "poll_sensors", 44, "readings = await asyncio.gather(*reading)",
                 ("sensors", 31, "degrees"), "could not convert string to float: '--.-'"),
    ),
    "scan_archive": (
        _failure("OSError", "scan_archive", 81, "scan(part)",
                 ("archive", 12, "scan"), "[Errno 5] Input/output error: '/srv/archive/2026-11/part-17'"),
    ),
    "notify_on_call": (
        _failure("ConnectionError", "notify_on_call", 70, "pager.send(message)",
                 ("pager", 19, "send"), "the pager service did not answer"),
        _failure("ConnectionError", "notify_on_call", 70, "pager.send(message)",
                 ("pager", 19, "send"), "the pager service did not answer"),
        _failure("PermissionError", "notify_on_call", 70, "pager.send(message)",
                 ("pager", 33, "check"), "the token of the pager service has expired"),
    ),
}  # fmt: skip
"""The ways in which each job fails; what is there twice comes twice as often."""
