"""“How does a job stand?” has one answer: of the list, the page, the filters, the command, the API and health."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import unescape
from io import StringIO

import pytest
from django.conf import settings as project
from django.contrib.admin import site
from django.core.management import call_command
from django.db import connection

from scheduler import get_job, get_scheduler_status, list_jobs
from scheduler.admin.badges import ATTENTION
from scheduler.clock import ManualClock
from scheduler.engine.control import pause_all, pause_group, pause_job, update_job
from scheduler.engine.finish import Finished, finish_runs
from scheduler.engine.tick import tick
from scheduler.engine.views.job_view import JobView
from scheduler.executors.call import context_for
from scheduler.executors.inline import call_inline
from scheduler.models import Job, JobWatch, RunLog, Status
from scheduler.schedules import AfterJobs, Every, Manual, Once
from scheduler.schedules.instants import instant_text
from tests.factories import (
    DAY,
    HOUR,
    T0,
    at,
    claim_one,
    finish,
    make_engine,
    make_job,
    make_registry,
    run_at,
    tick_at,
)
from tests.integration.admin.pages import page
from tests.integration.metrics.samples import told

pytestmark = pytest.mark.django_db
HOURLY = Every(hours=1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """How a job comes into a state; what is then told of it at `now`, and `says` is a part of the reason."""

    make: Callable[[], object]
    state: str = "scheduled"
    next: datetime | None = None
    says: str = ""
    attention: str = ""
    now: datetime = T0
    would: datetime | None = None
    after_run: bool = False
    problem: str = ""
    found: bool = True
    """Whether a query can tell the state."""


def claimed(**options) -> None:
    make_job(schedule=HOURLY, **options)
    claim_one(make_engine(), at(hours=1))


def failed(hours: int = 1, **options) -> None:
    make_job(schedule=HOURLY, **options)
    run_at(make_engine(), at(hours=hours), Status.FAILED)


def paused_own(**pause) -> None:
    make_job(schedule=HOURLY)
    pause_job("job", reason="moving house", actor="ann", **pause)


def paused_with(pause, **until) -> None:
    make_job(schedule=HOURLY, columns={"group": "night"})
    pause(reason="moving house", actor="ann", **until)


def stopped(**columns) -> None:
    make_job(schedule=HOURLY, columns={"next_run_at": None, "wake_at": None, **columns})


def disabled() -> None:
    make_job(schedule=HOURLY)
    update_job("job", enabled=False)


def finished() -> None:
    make_job(schedule=Once(at(hours=1)))
    run_at(make_engine(), at(hours=1))


def unreadable() -> None:
    job = make_job(schedule=HOURLY)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = 'nonsense' WHERE id = %s", [job.pk])


def at_its_gate() -> None:
    make_job(schedule=HOURLY, gate_closed="wait")
    engine = make_engine(tasks=make_registry("task", gate=lambda: "the shop is closed"))
    claimed = claim_one(engine, at(hours=1))
    outcome = call_inline(claimed, context_for(claimed), ManualClock(at(hours=1)))
    finish_runs(engine, [Finished(claimed.run, outcome)])


def after_another() -> None:
    make_job("other", Every(days=1))
    make_job(schedule=AfterJobs("other"))


def rate_limited() -> None:
    make_job(schedule=HOURLY, rate_limit="1/day")
    engine = make_engine()
    run_at(engine, at(hours=1))
    tick_at(engine, at(hours=2))


def group_full() -> None:
    project.SCHEDULER_GROUPS = {"night": 1}
    make_job("other", HOURLY, columns={"group": "night"})
    claim_one(make_engine(), at(hours=1))
    make_job(schedule=HOURLY, columns={"group": "night"})


def stuck() -> None:
    claimed()
    RunLog.objects.update(stuck_at=at(hours=1))


def handed_over(*, again: bool = False, **options) -> None:
    make_job(schedule=HOURLY, executor="in_memory", **options)
    engine = make_engine()
    engine.handovers = frozenset({"in_memory"})
    for now in (at(hours=1), *([at(hours=1, minutes=10)] if again else [])):
        for _ in range(2):
            tick(engine, now, ahead=timedelta(0), capacity=4, handing={"in_memory": 9})


def failing() -> None:
    make_job(schedule=HOURLY, backoff=[1])
    engine = make_engine()
    for hours in (1, 2, 3):
        run_at(engine, at(hours=hours), Status.FAILED)


def late() -> None:
    make_job(schedule=HOURLY, columns={"next_run_at": T0 - HOUR, "wake_at": T0 - HOUR})


def slower() -> None:
    make_job(schedule=HOURLY)
    JobWatch.objects.create(job=Job.objects.get(), slow_after=timedelta(seconds=20), measured_at=T0)
    run = claim_one(engine := make_engine(), at(hours=1))
    finish(engine, run, at(hours=1), after=21)


NEVER = timedelta(hours=9_000)
CASES = {
    "new": Case(make=lambda: make_job(schedule=HOURLY, planned_at=None), next=at(hours=1), would=at(hours=1)),
    "scheduled": Case(make=lambda: make_job(schedule=HOURLY), next=at(hours=1)),
    "running": Case(make=claimed, state="running", next=at(hours=2), now=at(hours=1)),
    "running beside": Case(
        make=lambda: claimed(overlap="allow", max_concurrent=2), state="running", next=at(hours=2), now=at(hours=1)
    ),
    "busy, and a slot has passed": Case(make=claimed, state="running", now=at(hours=2, minutes=30), after_run=True),
    "paused": Case(make=paused_own, state="paused", says="The job is paused by ann: moving house"),
    "paused with an end": Case(
        make=lambda: paused_own(until=T0 + DAY), state="paused", next=T0 + DAY, says="until 2026-03-03 12:00 UTC"
    ),
    "its group paused": Case(make=lambda: paused_with(lambda **why: pause_group("night", **why)), state="paused",
                             says="Group night is paused by ann: moving house"),
    "its group paused with an end": Case(
        make=lambda: paused_with(lambda **why: pause_group("night", **why), until=T0 + DAY),
        state="paused", next=T0 + DAY, says="until 2026-03-03 12:00 UTC: moving house",
    ),
    "everything paused": Case(make=lambda: paused_with(pause_all), state="paused", says="Everything is paused by ann"),
    "everything paused with an end": Case(
        make=lambda: paused_with(pause_all, until=T0 + DAY), state="paused", next=T0 + DAY, says="until 2026-03-03"
    ),
    "paused, and its group for longer": Case(
        make=lambda: [paused_own(until=T0 + DAY), Job.objects.update(group="night"),
                      pause_group("night", until=T0 + 2 * DAY)],
        state="paused", next=T0 + 2 * DAY, says="The job is paused by ann until 2026-03-03",
    ),
    "broken": Case(make=lambda: failed(breaker_threshold=1), state="broken", says="1 failure in a row",
                   attention="broken", now=at(hours=1), problem="broken"),
    "broken with a probe": Case(
        make=lambda: failed(breaker_threshold=1, breaker_probe_after="2h"), state="broken", next=at(hours=4),
        says="1 failure in a row", attention="broken", now=at(hours=1, minutes=1), problem="broken",
    ),
    "disabled": Case(make=disabled, state="disabled", would=at(hours=1)),
    "broken and disabled": Case(
        make=lambda: stopped(enabled=False, broken_at=T0), state="disabled", would=None
    ),
    "finished": Case(make=finished, state="finished", now=at(hours=2), found=False),
    "orphaned": Case(make=lambda: stopped(orphaned_at=T0, problem="Its module is gone."), state="orphaned",
                     says="Its module is gone.", problem="orphaned"),
    "invalid": Case(make=lambda: stopped(problem="No such zone."), state="invalid", says="No such zone.",
                    attention="invalid", problem="invalid"),
    "unreadable here": Case(make=unreadable, state="invalid", next=at(hours=1), says="nonsense", found=False),
    "waits for its gate": Case(make=at_its_gate, next=at(hours=1, seconds=30), now=at(hours=1),
                               says="It waits for its gate: the shop is closed"),
    "promised retry": Case(make=lambda: failed(retries=1, backoff=[600]), next=at(hours=1, minutes=10),
                           says="Attempt 2 starts at 2026-03-02 13:10 UTC.", now=at(hours=1)),
    "handed over": Case(make=handed_over, now=at(hours=1, minutes=9),
                        says="Attempt 1 was handed over to in_memory at 2026-03-02 13:00 UTC"),
    "handed over, and another may start": Case(
        make=lambda: handed_over(overlap="allow", max_concurrent=2), next=at(hours=2), now=at(hours=1, minutes=9),
        says="Attempt 1 was handed over to in_memory at 2026-03-02 13:00 UTC",
    ),
    "handed over, and no process takes it": Case(
        make=lambda: handed_over(again=True), now=at(hours=1, minutes=11), attention="overdue", problem="overdue",
        says="Attempt 1 was handed over to in_memory at 2026-03-02 13:10 UTC",
    ),
    "waits for parents": Case(make=after_another, says="It waits for other."),
    "overdue": Case(make=late, next=T0 - HOUR, attention="overdue", problem="overdue"),
    "rate limited": Case(make=rate_limited, next=at(hours=3), now=at(hours=2)),
    "group full": Case(make=group_full, next=at(hours=1), now=at(hours=1, minutes=2), says="The group night is full."),
    "stuck": Case(make=stuck, state="running", next=at(hours=2), now=at(hours=1), attention="stuck", problem="stuck"),
    "not fresh": Case(make=lambda: make_job(schedule=Manual(), fresh="1h"), now=at(hours=2), attention="not_fresh",
                      problem="not_fresh"),
    "its deadline missed": Case(
        make=lambda: make_job(schedule=Manual(), succeed_by="13:30"), now=at(hours=26), attention="deadline_missed",
        problem="deadline_missed",
    ),
    "slower than usual": Case(make=slower, next=at(hours=2), now=at(hours=1, seconds=30), attention="slower",
                              problem="slower"),
    "failing": Case(make=failing, next=at(hours=4), now=at(hours=3), attention="failing", problem="failing"),
}  # fmt: skip


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request, db, toy, stop_clock, settings) -> Case:
    stop_clock(T0)
    settings.SCHEDULER_GROUPS = {}
    request.param.make()
    stop_clock(request.param.now)
    return request.param


def test_the_api_says_so(case):
    view = get_job("job").view
    assert isinstance(view, JobView)
    assert (view.name, view.state, view.next_start, view.after_run) == ("job", case.state, case.next, case.after_run)
    assert (case.says in view.reason, bool(view.reason)) == (True, bool(case.says))
    assert (view.attention, view.stopped) == (case.attention, case.state not in ("scheduled", "running"))
    assert get_job("job").would_run_at == case.would or case.would is None
    assert "job" in [job.name for job in list_jobs(state=case.state)]


def test_the_command_says_so(case):
    told, view = StringIO(), get_job("job").view
    call_command("task_schedule", "job", "--json", stdout=told)
    (found,) = json.loads(told.getvalue())
    assert (found["state"], found["reason"], found["attention"]) == (case.state, view.reason, case.attention)
    assert found["next_start_at"] == (instant_text(case.next) if case.next else None)
    lines = StringIO()
    call_command("task_schedule", "job", stdout=lines)
    row = lines.getvalue().splitlines()[1]
    assert row.split()[:2] == ["job", case.state]
    assert " ".join(view.reason.split())[:60] in row
    assert ("after this run" in row) is case.after_run
    shown = case.next or (case.would if case.state == "disabled" else None)
    assert shown is None or f"{shown:%Y-%m-%d %H:%M:%S}" in row


def test_the_rest_api_says_so(case, boss, settings):
    pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
    settings.ROOT_URLCONF = "tests.integration.api.urls"
    view, told = get_job("job").view, boss.get("/api/scheduler/schedule/job").json()
    assert (told["state"], told["reason"], told["attention"]) == (case.state, view.reason, case.attention)
    assert told["next_start_at"] == (f"{case.next:%Y-%m-%dT%H:%M:%SZ}" if case.next else None)
    assert told["next_run"] == (None if case.state in ("running", "broken") else told["next_start_at"])
    assert case.would is None or told["would_run_at"] == f"{case.would:%Y-%m-%dT%H:%M:%SZ}"
    listed = boss.get("/api/scheduler/schedule", {"state": case.state}).json()["items"]
    assert told in listed


def region(response, name: str) -> str:
    found = re.search(rf'data-sched-live="{name}"[^>]*>(.*?)</(?:td|section|p)>', response.text, re.DOTALL)
    return unescape(found[1]) if found else ""


def instants(html: str) -> list[str]:
    return re.findall(r'class="sched-time" datetime="([^"]+)"', html)


def test_the_list_says_so(case, boss):
    key, view = Job.objects.get(name="job").pk, get_job("job").view
    response = boss.get(page("job_changelist"))
    status, start = region(response, f"{key}-status"), region(response, f"{key}-next")
    assert f"</span> {case.state}</span>" in status
    assert view.reason in status
    assert instants(start) == ([f"{case.next:%Y-%m-%dT%H:%M:%S}.000Z"] if case.next else [])
    assert ("after this run" in start) is case.after_run
    badges = {code: str(ATTENTION[code][2]) for code in ATTENTION}
    told = re.findall(rf"</span> ({'|'.join(badges.values())})</span>", status)
    assert told == ([badges[case.attention]] if case.attention in badges else [])


def listed(rf, admin_user, **filters: str) -> list[str]:
    """The jobs of the list with these filters; to draw it each time would take most of the time of these tests."""
    request = rf.get(page("job_changelist"), filters)
    request.user = admin_user
    return [job.name for job in site.get_model_admin(Job).get_changelist_instance(request).result_list]


def test_the_filters_find_it(case, rf, admin_user):
    if case.found:
        filters = {"scheduled": {}}.get(case.state, {"state": case.state})
        assert "job" in listed(rf, admin_user, **filters)
    assert ("job" in listed(rf, admin_user, state="attention")) is bool(case.attention)
    others = {"broken", "paused", "disabled", "orphaned", "invalid"} - {case.state, case.attention}
    assert [one for one in others if "job" in listed(rf, admin_user, state=one)] == []


def test_the_page_says_so(case, boss):
    view = get_job("job").view
    response = boss.get(page("job_page", Job.objects.get(name="job").pk))
    context, words = response.context, unescape(response.text)
    assert f"</span> {case.state}</span>" in words
    assert re.sub(r"<[^>]+>", "", context["reason"]) == re.sub(r"[<>]", "", view.reason) or view.reason in words
    assert instants(context["next_at"]) == ([f"{case.next:%Y-%m-%dT%H:%M:%S}.000Z"] if case.next else [])
    assert (("Goes on:" in words) or ("Next start:" in words)) is bool(case.next)
    assert context["stopped"] is view.stopped


def test_the_metrics_say_so(case):
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    slot = get_job("job").view.next_slot
    assert told("scheduler_job_state", task="job") == {(case.state,): 1}
    next_run = told("scheduler_next_run_timestamp_seconds", task="job")
    assert next_run == ({(): slot.timestamp()} if slot else {})
    if case.problem:
        assert case.problem in {code for code, _ in told("scheduler_problems")}


def test_health_says_so(case):
    status = get_scheduler_status()
    told = status.jobs_by_name["job"]
    assert (told["state"], told["next_run_at"]) == (case.state, get_job("job").view.next_slot)
    problems = {one.code for one in status.problems if one.subject == "job"}
    assert problems == ({case.problem} if case.problem else set())
    if case.found and case.state in status.jobs:
        assert status.jobs[case.state] >= 1


def test_views_of_a_page_of_jobs_cost_as_many_queries_as_of_one(django_assert_num_queries):
    from django.test.utils import CaptureQueriesContext

    def cost() -> int:
        jobs = list_jobs()
        with CaptureQueriesContext(connection) as queries:
            assert all(job.view.state for job in jobs)
        return len(queries)

    after_another()
    few = cost()
    for number in range(30):
        make_job(f"more{number}", AfterJobs("other") if number % 2 else HOURLY)
    assert cost() == few <= 7


def test_a_job_that_was_read_otherwise_has_no_view():
    make_job()
    assert (Job.objects.get().view, Job.objects.get().would_run_at) == (None, None)
