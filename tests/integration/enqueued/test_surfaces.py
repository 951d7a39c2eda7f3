"""What people see of tasks that were enqueued: the list of functions, their pages, the run log, and problems."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduler.clock import SYSTEM_CLOCK
from scheduler.contrib.tasks import enqueue_many
from scheduler.engine.control import enqueue_again, pause_group
from scheduler.engine.views.enqueued import enqueued_of, why_none_again
from scheduler.engine.views.overdue import TASKS_OVERDUE_AFTER
from scheduler.health import get_scheduler_status
from scheduler.metrics.figures import figures
from scheduler.models import Job, RunLog, Status
from scheduler.models.carriers import CARRIERS, DJANGO_TASKS, ONE_OFFS
from scheduler.problems.groups import of_queues
from scheduler.signals import run_finished
from tests.factories import T0, make_job

pytestmark = pytest.mark.django_db
RUN_LOG = reverse("admin:scheduler_runlog_changelist")
LIST = reverse("admin:scheduler_job_enqueued")


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def boss(db) -> Client:
    return client_of(User.objects.create_superuser("boss"))


@pytest.fixture
def viewer(db) -> Client:
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_job", "view_runlog"]))
    return client_of(user)


@pytest.fixture
def done(calls, run_due):
    """One task that succeeded, one that failed in the end after three attempts, and one that waits."""
    calls.echo.enqueue(1)
    calls.fail.using(backend="other").enqueue("no")
    for _ in range(3):
        run_due()
    calls.echo.enqueue(2)
    return calls


def carrier(function: str) -> Job:
    return Job.objects.get(CARRIERS, name__endswith=function)


def again(client: Client, *runs: RunLog, **more: str):
    chosen = {"action": "enqueue_again", "_selected_action": [run.pk for run in runs], "index": "0", **more}
    return client.post(RUN_LOG, chosen, follow=True)


def messages_of(response) -> list[str]:
    return [str(one) for one in response.context["messages"]]


def test_the_list_of_functions_counts_by_rows_and_leads_to_the_run_log(boss, done):
    page = boss.get(LIST).content.decode()
    echo, fail = carrier(".echo"), carrier(".fail")
    assert f'<a href="{RUN_LOG}?job={echo.pk}&amp;status__exact=pending">1</a>' in page
    assert f'<a href="{RUN_LOG}?job={echo.pk}&amp;status__exact=succeeded">1</a>' in page
    assert f'<a href="{RUN_LOG}?job={fail.pk}&amp;status__exact=failed">3</a>' in page
    assert boss.get(f"{RUN_LOG}?job={fail.pk}&status__exact=failed").context["cl"].result_count == 3
    (one,) = enqueued_of([echo], SYSTEM_CLOCK.now())
    assert (one.waiting, one.running, one.succeeded, one.failed) == (1, 0, 1, 0)
    assert one.function.endswith(".echo")
    assert one.queue == "default"


def test_the_list_takes_as_many_queries_for_many_functions_as_for_few(boss, calls):
    def queries() -> int:
        boss.get(LIST)  # what is asked once in a process
        with CaptureQueriesContext(connection) as asked:
            assert boss.get(LIST).status_code == 200
        return len(asked)

    calls.echo.enqueue(1)
    few = queries()
    for function in (calls.add, calls.give, calls.note, calls.fail, calls.saves):
        function.enqueue()
    assert queries() == few


def test_the_list_of_jobs_has_no_function_and_its_filter_leads_to_their_list(boss, calls):
    calls.echo.enqueue(1)
    make_job("nightly")
    jobs = reverse("admin:scheduler_job_changelist")
    assert [job.name for job in boss.get(jobs).context["cl"].result_list] == ["nightly"]
    assert boss.get(f"{jobs}?jobs=enqueued").url == LIST


def test_the_page_of_a_function_tells_what_is_true_for_it(boss, done):
    page = boss.get(reverse("admin:scheduler_job_page", args=[carrier(".echo").pk])).content.decode()
    for wrong in ("Run now", "Why did it not run", "Next slots", "never", "only by hand"):
        assert wrong not in page, wrong
    assert "Its tasks start when they are due" in page
    assert "Pause" in page


def test_a_viewer_sees_the_list_and_may_not_run_again(viewer, done):
    failed = RunLog.objects.filter(status=Status.FAILED).latest("attempt")
    assert viewer.get(LIST).status_code == 200
    address = reverse("admin:scheduler_runlog_again", args=[failed.pk])
    assert address not in viewer.get(reverse("admin:scheduler_runlog_change", args=[failed.pk])).content.decode()
    before = RunLog.objects.count()
    assert viewer.post(address).status_code == 403
    again(viewer, failed)
    assert RunLog.objects.count() == before


def test_what_has_ended_is_enqueued_again_once_for_all_its_attempts(boss, done, run_due):
    before = set(RunLog.objects.values_list("pk", flat=True))
    response = again(boss, *RunLog.objects.all())
    assert messages_of(response) == ["2 tasks were enqueued again."]
    new = RunLog.objects.exclude(pk__in=before).order_by("job__name")
    assert [(run.status, run.attempt, run.actor) for run in new] == [("pending", 1, "boss")] * 2
    assert [run.kwargs["args"] for run in new] == [[1], ["no"]]
    run_due()
    assert Status.SUCCEEDED in {run.status for run in new.all()}


def test_all_of_a_filter_are_enqueued_again(boss, calls, run_due):
    enqueue_many(calls.echo, [((number,), {}) for number in range(60)])
    while run_due():
        pass
    response = again(boss, RunLog.objects.first(), select_across="1")
    assert messages_of(response) == ["60 tasks were enqueued again."]
    assert RunLog.objects.waiting().count() == 60


def test_a_form_that_is_clicked_twice_enqueues_once_and_says_so(boss, done):
    run, other = RunLog.objects.get(status=Status.SUCCEEDED), RunLog.objects.get(status=Status.FAILED, attempt=3)
    form, page = {"csrfmiddlewaretoken": "of this page"}, reverse("admin:scheduler_runlog_again", args=[run.pk])
    told, twice = "1 task was enqueued again.", "This form was sent twice: its tasks are enqueued again once."
    before = RunLog.objects.count()
    assert [messages_of(again(boss, run, **form)) for _ in range(2)] == [[told], [twice]]
    assert [messages_of(boss.post(page, form, follow=True)) for _ in range(2)] == [[told], [twice]]
    assert RunLog.objects.count() == before + 2, "the list and the page of the run are two forms"
    assert messages_of(again(boss, other, **form)) == [told], "so is another choice on the same list"
    assert messages_of(again(boss, run, csrfmiddlewaretoken="of the next page")) == [told]


@pytest.mark.parametrize("passed", [timedelta(0), timedelta(hours=1)])
def test_a_form_whose_first_click_still_goes_on_enqueues_nothing_more(boss, done, monkeypatch, passed, stop_clock):
    run = RunLog.objects.filter(status=Status.SUCCEEDED).first()
    form, seen = {"csrfmiddlewaretoken": "of this page"}, []

    def slow(*args, **options):
        stop_clock(SYSTEM_CLOCK.now() + passed)
        seen.append(messages_of(again(boss, run, **form)))
        return enqueue_again(*args, **options)

    monkeypatch.setattr("scheduler.engine.control.enqueue_again", slow)
    before = RunLog.objects.count()
    assert messages_of(again(boss, run, **form)) == ["1 task was enqueued again."]
    told = "This form was sent before, and is being carried out. To send another one, load the page again."
    assert seen == [[told]]
    assert RunLog.objects.count() == before + 1


def test_they_are_written_in_batches(calls, run_due, monkeypatch):
    from scheduler.engine.control import again as module

    monkeypatch.setattr(module, "AT_ONCE", 7)
    enqueue_many(calls.echo, [((number,), {}) for number in range(20)])
    while run_due():
        pass
    now = SYSTEM_CLOCK.now()
    assert enqueue_again(RunLog.objects.all(), now) == 20
    assert sorted(run.kwargs["args"][0] for run in RunLog.objects.waiting()) == list(range(20))
    assert enqueue_again(RunLog.objects.waiting(), now) == 0


def test_runs_of_jobs_are_not_enqueued(boss, db):
    run = RunLog.of(make_job("nightly"), scheduled_for=T0, trigger="schedule", status=Status.SUCCEEDED)
    run.save()
    told = "none of the chosen runs is a task of Django. The page of a run of a job has “Run again”."
    assert messages_of(again(boss, run)) == [f"Nothing was enqueued: {told}"]


def test_what_is_not_enqueued_again_is_told_with_the_reason(boss, done):
    waits = RunLog.objects.get(status=Status.PENDING)
    first, *_, last = RunLog.objects.filter(status=Status.FAILED).order_by("attempt")
    before = RunLog.objects.count()
    for run, why in (
        (waits, "none of the chosen tasks has ended."),
        (first, "each of the chosen tasks has a later attempt in the run log; choose that one."),
    ):
        assert messages_of(again(boss, run)) == [f"Nothing was enqueued: {why}"]
    assert RunLog.objects.count() == before
    assert messages_of(again(boss, first, last)) == ["1 task was enqueued again."]


def test_a_run_that_was_removed_since_is_told(done):
    run = RunLog.objects.filter(status=Status.SUCCEEDED).first()
    runs = RunLog.objects.filter(pk=run.pk)
    run.delete()
    assert why_none_again(runs) == "the chosen runs are no longer in the run log."


def test_people_read_the_function_and_what_is_not_usual_and_machines_the_name(boss, done, settings, caplog):
    caplog.set_level("INFO", "scheduler")
    echo, fail = carrier(".echo"), carrier(".fail")
    path = echo.name.removeprefix("default:default:")
    assert (str(echo), str(fail)) == (path, f"{fail.name.removeprefix('other:default:')} (backend other)")
    run_finished.send(Job, job=echo, run=echo.runs.filter(status=Status.SUCCEEDED).get())
    (record,) = caplog.records
    assert (record.getMessage().partition(" run ")[0], record.job) == (path, echo.name)
    pages = [LIST, RUN_LOG, reverse("admin:scheduler_job_page", args=[fail.pk])]
    for text in (boss.get(address).content.decode() for address in pages):
        assert f">{fail.name}<" not in text
        assert str(fail) in text
    RunLog.objects.filter(status=Status.PENDING).update(status=Status.RUNNING, stuck_at=T0)
    (problem,) = [one for one in get_scheduler_status().problems if one.code == "stuck"]
    assert (problem.subject, str(problem).startswith(f"{path} ")) == (echo.name, True)


def test_the_api_and_the_metrics_tell_it_too(boss, done, settings):
    pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
    settings.ROOT_URLCONF = "tests.integration.api.urls"
    fail = carrier(".fail")
    told = boss.get(f"/api/scheduler/schedule/{fail.name}").json()
    assert (told["name"], told["shown_name"]) == (fail.name, str(fail))
    (run, *_) = boss.get(f"/api/scheduler/schedule/{fail.name}/runs").json()["items"]
    assert (run["job"], run["job_shown"]) == (fail.name, str(fail))
    assert figures().labels[fail.pk] == str(fail)


@pytest.mark.parametrize(
    ("name", "source", "shown"),
    [
        ("default:default:shop.tasks.add", DJANGO_TASKS, "shop.tasks.add"),
        ("default:mail:shop.tasks.add", DJANGO_TASKS, "shop.tasks.add (queue mail)"),
        ("slow:a:b:shop.tasks.add", DJANGO_TASKS, "shop.tasks.add (backend slow, queue a:b)"),
        ("default:default:shop.tasks.add", "shop.tasks", "default:default:shop.tasks.add"),
        ("once:digest", ONE_OFFS, "once:digest"),
        ("digest", "", "digest"),
    ],
)
def test_a_name_for_people(name, source, shown):
    assert Job(name=name, source=source).shown_name == shown


def test_the_page_of_a_run_names_its_result_and_the_run_log_finds_it_by_that(boss, calls, run_due):
    result, other = calls.echo.enqueue(1), calls.echo.enqueue(2)
    run_due()
    (found,) = boss.get(RUN_LOG, {"q": result.id}).context["cl"].result_list
    page = boss.get(reverse("admin:scheduler_runlog_change", args=[found.pk])).content.decode()
    assert result.id in page
    assert other.id not in page
    assert "Enqueue again" in page
    assert "Run again" not in page
    assert boss.post(reverse("admin:scheduler_runlog_again", args=[found.pk])).status_code == 302
    assert RunLog.objects.waiting().get().kwargs["args"] == [1]


def test_the_page_of_a_run_shows_the_call_and_not_what_it_is_kept_in(boss, calls, run_due):
    calls.echo.enqueue("zebra")
    run_due()
    calls.echo.enqueue(2, secret_token="hidden", colour="teal")
    with_args, with_both = RunLog.objects.order_by("pk")
    shown = boss.get(reverse("admin:scheduler_runlog_change", args=[with_args.pk])).context
    assert (shown["args"], shown["kwargs"]) == ('[\n  "zebra"\n]', "")
    facts = {str(name): str(value) for name, value, _more in shown["facts"]}
    assert facts["Function"].endswith(".echo")
    assert facts["Queue"] == "default"
    page = boss.get(reverse("admin:scheduler_runlog_change", args=[with_both.pk]))
    assert page.context["args"] == "[\n  2\n]"
    assert json.loads(page.context["kwargs"]) == {"secret_token": "***", "colour": "teal"}
    for kept in ("run_after", "&quot;backend&quot;", "Own keyword arguments", "&quot;hidden&quot;"):
        assert kept not in page.content.decode()


def test_a_task_without_arguments_says_so_and_a_run_of_a_job_is_run_again(boss, calls, run_due):
    calls.saves.enqueue()
    run_due()
    page = boss.get(reverse("admin:scheduler_runlog_change", args=[RunLog.objects.get().pk])).content.decode()
    assert "The function was called without arguments." in page
    run = RunLog.of(make_job("nightly"), scheduled_for=T0, trigger="schedule", status=Status.SUCCEEDED)
    run.save()
    page = boss.get(reverse("admin:scheduler_runlog_change", args=[run.pk])).content.decode()
    assert "Run again" in page
    assert "Enqueue again" not in page


def test_what_carries_tasks_is_not_counted_among_the_jobs_and_needs_a_process_all_the_same(calls):
    calls.echo.enqueue(1)
    pause_group("queue:default")
    status = get_scheduler_status()
    assert (status.jobs["total"], status.jobs["paused"]) == (0, 0)
    assert [problem.code for problem in status.problems] == ["no_instance"]


class TestDueForLong:
    """Tasks that are due, and that nothing takes."""

    @pytest.fixture
    def later(self, calls):
        calls.echo.enqueue(1)
        calls.echo.using(run_after=SYSTEM_CLOCK.now() + timedelta(days=1)).enqueue(2)
        return SYSTEM_CLOCK.now() + TASKS_OVERDUE_AFTER + timedelta(seconds=10)

    def test_they_are_a_problem_of_their_queue(self, later):
        (problem,) = of_queues(later)
        assert (problem.code, problem.subject, problem.values["tasks"]) == ("tasks_due", "default", 1)
        assert problem.text.startswith("1 task of the queue default is due, the oldest for 5 min 1")
        assert list(of_queues(later - timedelta(seconds=60))) == []

    def test_a_queue_that_is_worked_on_or_paused_is_none(self, later, engine, calls):
        waiting, running = RunLog.objects.order_by("pk")
        RunLog.objects.filter(pk=running.pk).update(status=Status.RUNNING, due_at=waiting.due_at)
        assert list(of_queues(later)) == []
        RunLog.objects.filter(pk=running.pk).update(status=Status.SUCCEEDED, due_at=None)
        assert list(of_queues(later)) != []
        pause_group("queue:default")
        assert list(of_queues(later)) == []
