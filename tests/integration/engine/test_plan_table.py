"""The plan of a job after every event, from every state."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from scheduler.engine.control import pause_job, reset_job, resume_job, update_job
from scheduler.engine.instances import leave
from scheduler.engine.mend.clock_change import clock_moved_back
from scheduler.engine.release import release_runs
from scheduler.engine.sync.follow_code import sync, take_back
from scheduler.models import Job, Status
from scheduler.models.job_columns import AT_ONCE, NO_PLAN, REFUSED, WHERE_IT_GOES_ON, to_replan
from scheduler.registry import Registry
from scheduler.schedules import Every, Once
from tests.factories import T0, at, claim_at, finish, make_engine, make_job, tick_at

pytestmark = pytest.mark.django_db

BY_HAND, EVENT = at(90), at(150)
"""When people stop a job, and when the event of a column happens. Its slot at 60, of each minute, was taken."""

STATES = {
    "new": {},
    "scheduled": {"runs": "ended"},
    "its rate is used up": {"runs": "ended", "rate_limit": "1/h"},
    "running": {"runs": "living"},
    "running, one more may": {"runs": "living", "overlap": "allow", "max_concurrent": 2},
    "running, counted from its end": {"runs": "living", "schedule": Every(minutes=1, from_completion=True)},
    "running, the last one": {"runs": "living", "max_runs": 1},
    "running, paused": {"runs": "living", "then": "pause"},
    "running, disabled": {"runs": "living", "then": "disable"},
    "running, orphaned": {"runs": "living", "then": "orphan"},
    "running, stale": {"runs": "living", "then": "edit"},
    "paused": {"runs": "ended", "then": "pause"},
    "paused with an end": {"runs": "ended", "then": "pause until 300"},
    "broken": {"runs": "failed", "breaker_threshold": 1},
    "broken, with a probe": {"runs": "failed", "breaker_threshold": 1, "breaker_probe_after": 300},
    "finished": {"runs": "ended", "schedule": Once(at(60))},
    "orphaned": {"runs": "ended", "then": "orphan"},
    "disabled": {"runs": "ended", "then": "disable"},
    "set aside": {"runs": "ended", "then": "refuse"},
    "stale": {"runs": "ended", "then": "edit"},
    "stale, orphaned": {"runs": "ended", "then": "edit, orphan"},
}


class Case:
    """One job, one engine that knows its task, and what it has claimed."""

    def __init__(self, runs="", then="", schedule=None, **options):
        self.engine, self.claims = make_engine(), []
        make_job("task", schedule, planned_at=T0 if runs else None, **options)
        if runs:
            self.claims = claim_at(self.engine, at(60)).runs
        if runs in ("ended", "failed"):
            self.end(at(61), Status.FAILED if runs == "failed" else Status.SUCCEEDED)
        for step in filter(None, then.split(", ")):
            self.stop(step)

    def stop(self, step):
        rows = Job.objects.all()
        match step:
            case "pause":
                pause_job("task")
            case "pause until 300":
                pause_job("task", until=at(300))
            case "disable":
                update_job("task", enabled=False)
            case "orphan":
                rows.update(orphaned_at=BY_HAND, **to_replan(WHERE_IT_GOES_ON, wake_at=None))
            case "edit":
                rows.update(**to_replan(WHERE_IT_GOES_ON))
            case "refuse":
                rows.update(problem=REFUSED, **NO_PLAN)

    def end(self, now, status):
        for claimed in self.claims:
            finish(self.engine, claimed, now, status)

    def happens(self, event):
        match event:
            case "tick":
                tick_at(self.engine, EVENT)
            case "success":
                self.end(EVENT, Status.SUCCEEDED)
            case "failure":
                self.end(EVENT, Status.FAILED)
            case "lost":
                self.end(EVENT, Status.LOST)
            case "released":
                release_runs(self.engine, self.claims)
            case "pause":
                pause_job("task")
            case "pause until":
                pause_job("task", until=at(600))
            case "resume":
                resume_job("task")
            case "reset":
                reset_job("task")
            case "policy":
                update_job("task", grace=timedelta(hours=1))
            case "schedule":
                update_job("task", schedule=Every(minutes=2))
            case "disable":
                update_job("task", enabled=False)
            case "enable":
                update_job("task", enabled=True)
            case "task gone":
                leave(self.engine)
                sync(make_engine(tasks=Registry()), EVENT)
            case "task back":
                take_back(self.engine, ["task"])
            case "clock back":
                clock_moved_back(self.engine, at(30))


# fmt: off
TABLE = """
                              | tick   | success | failure | lost   | released | pause | pause until | resume | reset | policy | schedule | disable | enable | task gone | task back | clock back
new                           | 210    | .       | .       | .      | .        | -     | -@600       | ?      | 210   | 210    | 270      | -       | 210    | ?@-       | ?         | ?
scheduled                     | 180@-  | .       | .       | .      | .        | -     | -@600       | 120    | 120   | 120    | 240      | -       | 120    | ?120@-    | 120       | 90
its rate is used up           | 180    | .       | .       | .      | .        | -     | -@600       | 120    | 120   | 120    | 240      | -       | 120    | ?120@-    | 120       | 90
running                       | 120@-  | 180     | 180     | 120    | 60       | -     | -@600       | 120@-  | 120@- | 120@-  | 240@-    | -       | 120@-  | ?120@-    | 120@-     | 90@-
running, one more may         | 180@-  | 120@150 | 120@180 | 120    | 60       | -     | -@600       | 120    | 120   | 120    | 240      | -       | 120    | ?120@-    | 120       | 90
running, counted from its end | -      | 210     | 210     | 210    | 60       | -     | -@600       | -      | 210@- | 210@-  | 240@-    | -       | -      | ?@-       | -         | -
running, the last one         | -      | -       | -       | -      | 60       | -     | -@600       | -      | -     | -      | -        | -       | -      | ?@-       | -         | -
running, paused               | -      | -       | -       | -      | -        | -     | -@600       | 180@-  | -     | -      | -        | -       | -      | ?@-       | -         | -
running, disabled             | -      | -       | -       | -      | -        | -     | -@600       | -      | -     | -      | -        | -       | 210@-  | ?@-       | -         | -
running, orphaned             | ?120@- | ?120@-  | ?120@-  | ?120@- | ?60@-    | -     | -@600       | ?120@- | 120@- | 120@-  | 240@-    | -       | ?120@- | ?120@-    | ?120      | ?120@-
running, stale                | 120@-  | ?120    | ?120    | ?120   | ?60      | -     | -@600       | ?120   | 120@- | 120@-  | 240@-    | -       | 120@-  | ?120@-    | ?120      | ?120
paused                        | -      | .       | .       | .      | .        | -     | -@600       | 180    | -     | -      | -        | -       | -      | ?@-       | -         | -
paused with an end            | -@300  | .       | .       | .      | .        | -     | -@600       | 180    | -@300 | -@300  | -@300    | -       | -@300  | ?300@-    | -@300     | -@300
broken                        | -      | .       | .       | .      | .        | -     | -@600       | 180    | 180   | -      | 240      | -       | -      | ?@-       | -         | -
broken, with a probe          | 420    | .       | .       | .      | .        | -     | -@600       | 180    | 180   | 420    | 240      | -       | 420    | ?420@-    | 420       | 390
finished                      | -      | .       | .       | .      | .        | -     | -@600       | -      | -     | -      | 240      | -       | -      | ?@-       | -         | -
orphaned                      | ?120@- | .       | .       | .      | .        | -     | -@600       | ?120@- | 120   | 120    | 240      | -       | ?120@- | ?120@-    | ?120      | ?120@-
disabled                      | -      | .       | .       | .      | .        | -     | -@600       | -      | -     | -      | -        | -       | 210    | ?@-       | -         | -
set aside                     | -      | .       | .       | .      | .        | -     | -@600       | -      | 180   | 180    | 240      | -       | -      | ?@-       | -         | -
stale                         | 180@-  | .       | .       | .      | .        | -     | -@600       | ?120   | 120   | 120    | 240      | -       | 120    | ?120@-    | ?120      | ?120
stale, orphaned               | ?120@- | .       | .       | .      | .        | -     | -@600       | ?120@- | 120   | 120    | 240      | -       | ?120@- | ?120@-    | ?120      | ?120@-
"""  # noqa: E501
# fmt: on
"""For each state the plan after each event: the next slot, and `@` when the job wakes where that is another instant.
A stale plan has a `?`, and from where it is made again. `.`: there is no run to which that could happen."""

HEAD, *ROWS = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip("\n").splitlines()]
CELLS = {row[0]: dict(zip(HEAD[1:], row[1:], strict=True)) for row in ROWS}


def seconds(instant: datetime) -> str:
    return f"{(instant - T0).total_seconds():g}"


def said(job: Job) -> str:
    """Return a plan as the table has it."""
    if job.stale:
        assert job.next_run_at is None
        assert job.wake_at in (AT_ONCE, None)
        return f"?{seconds(job.replan_from) if job.replan_from else ''}{'' if job.wake_at else '@-'}"
    assert job.replan_from is None
    slot = seconds(job.next_run_at) if job.next_run_at else "-"
    wakes = seconds(job.wake_at) if job.wake_at else "-"
    return slot if slot == wakes else f"{slot}@{wakes}"


def test_the_table_has_every_state():
    assert CELLS.keys() == STATES.keys()


@pytest.mark.parametrize("state", STATES)
def test_what_comes_next_after_every_event_I3_I8_I9(known, clock, state):
    found = {}
    clock.advance(90)
    for event, cell in CELLS[state].items():
        with transaction.atomic():
            case = Case(**STATES[state])
            clock.advance(60)
            if cell != ".":
                case.happens(event)
                found[event] = said(Job.objects.get())
            clock.advance(-60)
            transaction.set_rollback(True)
    assert found == {event: cell for event, cell in CELLS[state].items() if cell != "."}
