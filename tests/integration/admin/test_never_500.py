"""Whatever people write into an address or send with a form, the answer is a page, a refusal or a message.

All requests take minutes. Unless `--every-request` is given, each crawl sends one in `ONE_IN` of them.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection, transaction
from django.test import Client

from scheduler.admin.jobs.form import COLUMNS, JobForm
from scheduler.clock import SYSTEM_CLOCK
from scheduler.engine.views.datetimes import FIRST, LAST
from scheduler.models import Group, Instance, Job, RunLog, Status
from scheduler.schedules import DailyAt, Every, Once
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_editor import REST

pytestmark = [pytest.mark.usefixtures("task"), pytest.mark.timeout(300)]

NUMBERS = ["-1", "²", "\u0663", "9" * 30, "9" * 5000]
TEXTS = ["", "abc", "\x00", "\ud800", "'\"<&%s", "[]"]
INSTANTS = ["9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00", "9999-12-31 23:59", "yesterday 25:00"]
ODD = [*NUMBERS, *TEXTS, *INSTANTS]
SENT = [odd for odd in ODD if odd != "\ud800"]
"""In a form; there is no way to send a lone surrogate."""
FEW = ["", "²", "\x00", INSTANTS[0]]
MODELS = (Job, RunLog, Instance)
ONE_IN = 61
"""No length of a list above is a multiple of it, so that the sample meets each value."""
ASKED = {
    "job": ["q", "o", "p", "e", "all", "state", "task", "group", "task__exact", "_popup", "_to_field", "nothing"],
    "runlog": ["q", "o", "p", "job", "status__exact", "trigger__exact", "period", "before", "job__name"],
    "instance": ["q", "o", "p", "host"],
    "job/overview": ["page"],
    "job/{job}": ["why"],
    "job/{job}/runs": ["before", "attempt", "status", "fragment"],
    "job/pause-all": ["group"],
}
"""What an address may ask; `job` is the number of a job that is there."""


@pytest.fixture
def job(db) -> Job:
    """A job with runs, in a group, in a database where there is something of everything."""
    now = SYSTEM_CLOCK.now()
    job = make_job("job", Every(hours=1), columns={"group": "night", "source": "app.tasks"})
    for status in (Status.FAILED, Status.SUCCEEDED):
        RunLog.objects.create(job=job, scheduled_for=now, attempt=2 - (status == "failed"), status=status, error="oh")
    Instance.objects.create(host="h", pid=1, started_at=now, heartbeat_at=now)
    Group.objects.create(name="night")
    return job


@pytest.fixture(params=["boss", "viewer"])
def person(request) -> Client:
    return request.getfixturevalue(request.param)


def routes() -> list[str]:
    """The address of every page of ours, as its pattern."""
    found = []
    for model in MODELS:
        name = model._meta.model_name
        found += [f"{name}/{url.pattern}" for url in admin.site._registry[model].get_urls()]
    return found


def addresses(real: int) -> Iterator[str]:
    """Every page, with a number that is there and with odd ones."""
    for route in routes():
        before, place, rest = route.partition("<")
        numbers = [str(real), *NUMBERS, *TEXTS] if place else [""]
        yield from (before + quote(number, errors="surrogatepass") + rest.partition(">")[2] for number in numbers)


def questions(real: int) -> Iterator[str]:
    """Every page that can be asked something, asked odd things."""
    for where, names in ASKED.items():
        for name in names:
            yield from (f"{where.format(job=real)}/?{name}={quote(odd, errors='replace')}" for odd in ODD)


def prefilled() -> Iterator[str]:
    """The form of a new job, filled in by the address."""
    for name in FIELDS:
        for kind in KINDS_OF.get(name, ["manual"]):
            yield from (f"job/add/?kind={kind}&interval_preset=&time=3:00&{name}={quote(odd)}" for odd in FEW)


def send(client: Client, method: str, address: str, body: Any = None) -> str:
    """The exception or the status that should not be; empty when all is well. Nothing that was written is kept."""
    try:
        with transaction.atomic():
            response = getattr(client, method)(f"/admin/scheduler/{address}", body)
            getattr(response, "render", lambda: None)()
            transaction.set_rollback(True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return f"status {response.status_code}" if response.status_code >= 500 else ""


def failures(client: Client, requests: Iterable[tuple[Any, ...]]) -> list[str]:
    return [f"{told} after {str(sent)[:200]}" for sent in requests if (told := send(client, *sent))]


@pytest.fixture
def some(request) -> Callable[[Iterator[tuple[Any, ...]]], Iterable[tuple[Any, ...]]]:
    """Choose which requests of a crawl are sent."""
    step = 1 if request.config.getoption("every_request") else ONE_IN
    return lambda requests: islice(requests, 0, None, step)


def test_no_address_ends_in_an_error(person, job, some):
    every = chain(addresses(job.pk), questions(job.pk), prefilled())
    assert failures(person, some(("get", one) for one in every)) == []


def test_no_empty_form_ends_in_an_error(person, job, some):
    assert failures(person, some(("post", one) for one in addresses(job.pk))) == []


def bodies(job: Job) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every form of ours with one odd value in it."""
    change, add, preview = f"job/{job.pk}/change/", "job/add/", "job/preview/"
    plain = {**REST, "name": "new", "kind": "manual"}
    for name in FIELDS:
        for kind in KINDS_OF.get(name, ["manual"]):
            ready = {**plain, "kind": kind, "interval_preset": "", "time": "3:00"}
            yield from (("post", preview, {**ready, name: odd}) for odd in SENT)
            yield from (("post", add, {**ready, name: odd}) for odd in (SENT if name in COLUMNS else ()))
    for kwargs in KWARGS:
        yield from (("post", where, {**plain, "kwargs": kwargs}) for where in (change, add, preview))
    for odd in SENT:
        yield "post", f"job/preview/?job={quote(odd, errors='replace')}", plain
        yield "post", "job/", {"action": "run_now", "_selected_action": odd}
        yield "post", "job/", {"action": "pause", "_selected_action": [job.pk, odd], "confirmed": "1", "until": odd}
        yield "post", "job/", {"action": odd, "index": odd, "_selected_action": job.pk, "select_across": odd}
        yield "post", f"job/{job.pk}/pause/", {"reason": odd, "until": "other", "at": odd, "next": odd}
        yield "post", "job/pause-all/", {"group": odd, "reason": odd}
        yield "post", "job/resume-all/", {"group": odd}
        yield "post", f"job/{job.pk}/run/", {"confirmed": odd, "next": odd}


FIELDS = list(JobForm.base_fields)
KINDS_OF = {
    "interval": ["every"], "interval_preset": ["every"], "from_completion": ["every"], "jitter": ["every", "cron"],
    "time": ["daily"], "days": ["weekly"], "month_day": ["monthly"], "expression": ["cron"], "once_at": ["once"],
    "jobs": ["after_jobs"], "jobs_on": ["after_jobs"], "timezone": ["daily", "once"], "text": ["text"],
}  # fmt: skip
KWARGS = ['{"a": NaN}', '{"a": -Infinity}', '{"a": "\\ud800"}', '{"a": "\\u0000"}', '{"\\udfff": 1}', "null", "0",
          '""', "[1]", '{"a": ' + "9" * 5000 + "}", "[" * 5000]  # fmt: skip


def test_no_form_with_an_odd_value_ends_in_an_error(person, job, some):
    assert failures(person, some(bodies(job))) == []


@pytest.mark.parametrize("kwargs", KWARGS[:5])
def test_arguments_that_not_every_database_keeps_are_an_error_at_their_field(boss, job, kwargs):
    for address in (page("job_add"), page("job_change", job.pk)):
        response = boss.post(address, {**REST, "name": "new", "kind": "manual", "kwargs": kwargs})
        assert list(response.context["adminform"].form.errors) == ["kwargs"]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
@pytest.mark.parametrize("far", [FIRST, LAST], ids=["first", "last"])
def test_instants_at_the_ends_of_time_take_no_page_down(boss, job, settings, far, zone):
    settings.TIME_ZONE = zone
    pause = {"paused_at": SYSTEM_CLOCK.now(), "paused_until": far, "wake_at": far, "next_run_at": far}
    make_job("paused", DailyAt(hour=3), columns=pause)
    make_job("last", Once(far), columns={"wake_at": far, "next_run_at": far})
    make_job("ends", Every(hours=1), columns={"anchor_at": far}, **{"starts_at" if far == FIRST else "ends_at": far})
    Group.objects.update(paused_at=SYSTEM_CLOCK.now(), paused_until=far)
    run = RunLog.objects.create(job=job, scheduled_for=far, status=Status.FAILED, started_at=far, finished_at=far)
    lists = ["job/", "job/overview/", "runlog/", "instance/", f"runlog/{run.pk}/change/"]
    ours = [f"job/{pk}/{rest}" for pk in Job.objects.values_list("pk", flat=True) for rest in ("", "runs/", "change/")]
    assert failures(boss, (("get", one) for one in [*lists, *ours])) == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="no other database keeps it")
def test_a_letter_that_no_page_can_carry_is_shown_escaped(boss, job):
    """Kept by an older release, which refused it nowhere."""
    Job.objects.update(kwargs={"a": "\ud800"})
    run = job.runs.first()
    RunLog.objects.update(kwargs={"a": "\ud800"})
    for address in (page("job_change", job.pk), page("runlog_change", run.pk)):
        assert "\\ud800" in text_of(boss.get(address)), address
