"""The page of the instances: which runs each has, since when, how far they are, and how many workers are free."""

import re
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission

from scheduler.admin import JobAdmin, RunLogAdmin
from scheduler.admin.times import DASH
from scheduler.models import Instance, Job, RunLog, Status
from scheduler.models.instance import Workers
from scheduler.schedules import Every
from tests.factories import MINUTE, T0, make_job
from tests.integration.admin.pages import page, text_of
from tests.integration.admin.test_query_counts import queries_of

LIST = "instance_changelist"


@pytest.fixture(autouse=True)
def still_clock(stop_clock):
    stop_clock(T0)


def instance(host: str, workers: Workers | None = None) -> Instance:
    told = {"workers": workers.to_tell()} if workers else {}
    times = dict.fromkeys(("started_at", "heartbeat_at", "ticked_at"), T0)
    return Instance.objects.create(host=host, pid=7, tasks=["task"], started_by="gunicorn", **times, **told)


def living(name: str, one: Instance | None, since=T0 - 5 * MINUTE, **columns) -> RunLog:
    columns = {"status": Status.RUNNING, "due_at": since, "started_at": since} | columns
    owner = one.pk if one else uuid4()
    return RunLog.objects.create(job=make_job(name), scheduled_for=since, instance_id=owner, **columns)


def rows_of(response) -> list[str]:
    """The words of the rows under “Who runs what”."""
    table = response.text.partition("Who runs what</h2>")[2].partition("</section>")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr><td.*?</tr>", table, re.DOTALL)]


def cell_of(response, name: str) -> str:
    (cell,) = re.findall(rf'class="field-{name}">.*?<div class="sched-cell">(.*?)</div></td>', response.text)
    return cell


def test_each_living_run_stands_with_its_instance_job_time_and_progress(boss):
    web, worker = instance("web"), instance("worker")
    first = living("load", worker, progress={"done": 40, "total": 100, "message": "page 40"})
    second = living("copy", web, T0 - MINUTE)
    RunLog.objects.create(job=make_job("over"), scheduled_for=T0, status=Status.SUCCEEDED, instance_id=web.pk)
    response = boss.get(page(LIST))
    assert rows_of(response) == [
        f"web:7 ▶ running {second.pk} 1 min ago copy {DASH}",
        f"worker:7 ▶ running {first.pk} 5 min ago load 40 % 40 % page 40",
    ]
    assert page("runlog_change", first.pk) in response.text
    assert page("job_page", first.job_id) in response.text


def test_workers_used_and_free_are_told_by_the_runs_of_the_list(boss):
    one = instance("web", Workers(count=4, used=3))
    for number in range(2):
        living(f"job{number}", one)
    assert cell_of(boss.get(page(LIST)), "used") == "2 used, 2 free"


def test_a_run_that_waited_has_the_worker_of_one_that_has_ended_since_the_heartbeat(boss):
    """The heartbeat told of two runs at work and two that wait; one of the former has ended."""
    one = instance("web")
    going, first, second = (living(name, one, T0 - MINUTE) for name in ("going", "first", "second"))
    since = living("since", one, T0 - MINUTE, started_at=T0)
    told = Workers(2, 2, 2, (first.pk, second.pk))
    Instance.objects.update(workers=told.to_tell(), heartbeat_at=T0 - MINUTE / 6)
    response = boss.get(page(LIST))
    assert cell_of(response, "used") == "2 used, 0 free, 2 runs wait"
    waits = {int(row.split("waiting for a worker ")[1].split()[0]) for row in rows_of(response) if "waiting" in row}
    assert waits == {second.pk, since.pk}
    RunLog.objects.filter(pk__in=[going.pk, since.pk]).update(status=Status.SUCCEEDED, due_at=None)
    response = boss.get(page(LIST))
    assert cell_of(response, "used") == "2 used, 0 free"
    assert not [row for row in rows_of(response) if "waiting" in row]


def test_a_run_that_goes_on_without_a_worker_uses_none(boss):
    one = instance("web")
    apart = living("apart", one)
    Instance.objects.update(workers=Workers(1, 0, 0, (), (apart.pk,)).to_tell())
    response = boss.get(page(LIST))
    assert cell_of(response, "used") == "0 used, 1 free"
    assert "▶ running" in rows_of(response)[0]


def test_before_its_first_heartbeat_nothing_is_told_of_workers(boss):
    instance("web")
    assert cell_of(boss.get(page(LIST)), "used") == DASH


def test_claimed_runs_that_have_not_started_come_last(boss):
    one = instance("web")
    ahead = living("ahead", one, T0, started_at=T0 + MINUTE)
    queued, going = living("queued", one, T0 - 2 * MINUTE), living("going", one, T0 - MINUTE)
    Instance.objects.update(workers=Workers(1, 1, 1, (queued.pk,)).to_tell())
    response = boss.get(page(LIST))
    assert cell_of(response, "used") == "1 used, 0 free, 2 runs wait"
    assert rows_of(response) == [
        f"web:7 ▶ running {going.pk} 1 min ago going {DASH}",
        f"web:7 … waiting for a worker {queued.pk} 2 min ago queued {DASH}",
        f"web:7 … waiting for a worker {ahead.pk} in 1 min ahead {DASH}",
    ]


def test_a_stuck_run_leads_to_its_stack(boss):
    run = living("load", instance("web"), stuck_at=T0, error="Stack of its thread")
    response = boss.get(page(LIST))
    assert rows_of(response) == [f"web:7 ⊘ stuck {run.pk} · stack 5 min ago load {DASH}"]
    assert f"{page('runlog_change', run.pk)}#sched-error" in response.text


def test_a_run_of_an_instance_that_is_gone_and_one_elsewhere_are_named(boss):
    gone = living("left", None)
    living("away", instance("web"), worker="celery@node3")
    words = rows_of(boss.get(page(LIST)))
    assert [words[0].split()[0], words[1].split()[0]] == sorted([str(gone.instance_id), "celery@node3"])


def test_without_a_living_run_it_says_so(boss):
    instance("web")
    assert "Nothing is running." in text_of(boss.get(page(LIST)))


def test_a_viewer_sees_it_and_who_may_not_see_runs_does_not(viewer, client, django_user_model):
    living("load", instance("web"))
    assert len(rows_of(viewer.get(page(LIST)))) == 1
    user = django_user_model.objects.create_user("clerk", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=("view_job", "view_instance")))
    client.force_login(user)
    assert "Who runs what" not in client.get(page(LIST)).text


def test_runs_of_hidden_jobs_and_hidden_runs_are_not_shown(boss, monkeypatch):
    one = instance("web")
    living("secret", one)
    hidden = living("hidden", one)
    living("mine", one)
    every = JobAdmin.get_queryset
    monkeypatch.setattr(JobAdmin, "get_queryset", lambda self, request: every(self, request).exclude(name="secret"))
    monkeypatch.setattr(
        RunLogAdmin, "has_view_permission", lambda self, request, obj=None: obj is None or obj.pk != hidden.pk
    )
    assert [row.split()[-2] for row in rows_of(boss.get(page(LIST)))] == ["mine"]


def test_it_makes_as_many_queries_with_many_runs_as_with_few(boss):
    living("job", instance("web0"))
    few = queries_of(boss, page(LIST))
    for number in range(1, 40):
        living(f"job{number}", instance(f"web{number}"))
    assert queries_of(boss, page(LIST)) == few <= 20


def test_more_than_two_hundred_are_not_listed(boss):
    one = instance("web")
    jobs = Job.objects.bulk_create(Job(name=f"j{n}", task="task", schedule=Every(minutes=1)) for n in range(201))
    RunLog.objects.bulk_create(
        RunLog(job=job, scheduled_for=T0, due_at=T0, started_at=T0, status=Status.RUNNING, instance_id=one.pk)
        for job in jobs
    )
    response = boss.get(page(LIST))
    assert len(rows_of(response)) == 200
    assert "Those that began first are shown, 200 of them." in text_of(response)
