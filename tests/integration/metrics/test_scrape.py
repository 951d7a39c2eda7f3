"""What a scrape tells of jobs and of the whole: bounded, always the same, and of nothing that is gone."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.engine.control import pause_all, remove_job
from scheduler.engine.mend.sweep import sweep
from scheduler.metrics import SchedulerCollector, figures, render
from scheduler.models import Instance, Job, JobState, RunLog, Status, Tally
from scheduler.models.tally import GONE, GONE_AND_FOLDED, LAST_WITH_LABEL
from scheduler.problems import survey
from scheduler.schedules import Every, Manual
from tests.costs import quick_at_best
from tests.factories import T0, at, claim_one, finish, make_engine, make_job, run_at
from tests.integration.metrics.samples import samples, told

prometheus = pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from scheduler.metrics.exposition import exposition  # noqa: E402

pytestmark = pytest.mark.django_db
NEXT = at(hours=1)
FAILS = {"breaker_threshold": None, "backoff": None, "retries": 0}


def make_jobs(count, kinds=2):
    """Make hourly jobs, each with counters of some kinds, an even number."""
    jobs = Job.objects.bulk_create(
        Job(name=f"job {n}", task="task", schedule=Every(hours=1), next_run_at=NEXT, wake_at=NEXT, stale=False)
        for n in range(count)
    )
    Tally.objects.bulk_create(
        Tally(job_id=job.pk, status=status, cause=cause, took_within=1000, late_within=50, count=2, took=7, late=5)
        for job in jobs
        for status in ("succeeded", "failed")
        for cause in ("schedule", *map(str, range(1, kinds // 2)))
    )
    return jobs


def make_runs(each):
    """Make runs of the past for every job, and let the database look at its tables."""
    RunLog.objects.bulk_create(
        RunLog(job=job, scheduled_for=at(hours=-n), started_at=T0, finished_at=T0, status=Status.SUCCEEDED)
        for job in Job.objects.all()
        for n in range(each)
    )
    if connection.vendor != "mysql":  # which keeps them itself, and would commit
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def scans_of_runs(sql):
    """Return the plan of a query when one of its steps reads the whole table of the runs."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            plan = [str(row) for row in cursor.cursor.execute(f"EXPLAIN QUERY PLAN {sql}")]
            by_index = sum("USING INDEX scheduler_run_open" in row for row in plan)
            return [] if by_index == sql.count('FROM "scheduler_runlog"') else plan
        cursor.execute(f"EXPLAIN {sql}".replace("%", "%%"))
        plan = cursor.fetchall()
    if connection.vendor == "mysql":  # the third column is the table or its alias, the columns of a scan say ALL
        return [row for row in plan if "ALL" in row and (row[2] == "scheduler_runlog" or int(row[-2] or 0) > RUNS_EACH)]
    return [row for row in plan if "Seq Scan on scheduler_runlog" in row[0]]


RUNS_EACH = 200


class TestJobs:
    def test_how_they_stand(self, clock):
        make_job(schedule=Every(hours=1), **FAILS)
        make_job("by hand", Manual())
        engine = make_engine()
        run_at(engine, at(hours=1))
        run_at(engine, at(hours=2), Status.FAILED)
        assert told("scheduler_next_run_timestamp_seconds") == {("job",): at(hours=3).timestamp()}
        assert told("scheduler_last_success_timestamp_seconds") == {("job",): at(hours=1).timestamp()}
        assert told("scheduler_consecutive_failures") == {("job",): 1}
        assert told("scheduler_job_state") == {("scheduled", "job"): 1, ("scheduled", "by hand"): 1}
        assert told("scheduler_jobs") == {("scheduled",): 2}

    def test_a_pause_of_all_is_that_of_each(self, clock):
        make_job(schedule=Every(hours=1))
        pause_all()
        assert told("scheduler_job_state") == {("paused", "job"): 1}
        assert told("scheduler_next_run_timestamp_seconds") == {}

    def test_one_that_cannot_be_read_costs_no_other(self, clock):
        make_job("good")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduler_job SET schedule = 'x' WHERE id = %s", [make_job("bad").pk])
        assert told("scheduler_job_state") == {("invalid", "bad"): 1, ("scheduled", "good"): 1}

    def test_a_failure_counts_from_nothing_MX1(self):
        """A series that begins with its first failure shows no increase."""
        make_job()
        first = samples()
        zero = "scheduler_task_runs_total", frozenset({("task", "job"), ("status", "failure"), ("trigger", "schedule")})
        assert first[zero] == 0


class TestGone:
    def test_a_deleted_job_has_no_series_and_stays_in_the_totals_MX6(self, clock):
        make_job(**FAILS)
        make_job("other one", Every(hours=1))
        engine = make_engine()
        for minute in (1, 2, 3):
            run_at(engine, at(minutes=minute), Status.FAILED)
        remove_job("job")
        for _ in range(2):
            assert [key for key in samples() if ("task", "job") in key[1]] == []
            assert told("scheduler_task_runs_total") == {}
            assert told("scheduler_runs_total") == {("failure", "schedule"): 3}
            sweep(engine, at(hours=1))
        assert list(Tally.objects.values_list("job_id", "count")) == [(GONE, 3)]

    def test_a_renamed_job_keeps_its_totals_and_its_old_name_is_gone_MX6(self, clock):
        make_job()
        run_at(make_engine(), at(60))
        Job.objects.update(name="new name")
        assert told("scheduler_task_runs_total") == {("success", "new name", "schedule"): 1}
        assert [key for key in samples() if ("task", "job") in key[1]] == []

    def test_a_dead_instance_is_not_counted_after_its_lease_MX6(self, clock):
        make_engine()
        clock.set(at(59))
        assert told("scheduler_instances") == {(): 1}
        clock.set(at(61))
        assert told("scheduler_instances") == {}


class TestBound:
    def test_the_oldest_jobs_have_labels_and_all_others_share_one_MX3(self, settings):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        make_jobs(5)
        runs = told("scheduler_task_runs_total", status="success")
        assert runs == {("job 0", "schedule"): 2, ("job 1", "schedule"): 2, ("other", "schedule"): 6}
        assert sum(runs.values()) == told("scheduler_runs_total")["success", "schedule"]
        assert {task for (task,) in told("scheduler_next_run_timestamp_seconds")} == {"job 0", "job 1"}
        assert told("scheduler_jobs") == {("scheduled",): 5}
        assert samples().keys() == samples().keys()

    def test_a_new_job_changes_no_label_MX3(self, settings):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        make_jobs(3)
        before = samples().keys()
        make_job("a new one")
        assert samples().keys() == before

    def test_what_many_deleted_jobs_have_counted_stays_under_the_common_label_MX1_MX6(self, settings, clock):
        settings.SCHEDULER_METRICS_MAX_JOBS = 1
        jobs, engine = make_jobs(4), make_engine()
        Job.objects.filter(pk__in=[jobs[2].pk, jobs[3].pk]).delete()
        for _ in range(2):
            assert told("scheduler_task_runs_total", status="failure", task="other") == {("schedule",): 6}
            sweep(engine, T0)
        assert Tally.objects.filter(job_id=GONE_AND_FOLDED).count() == 2

    def test_none_at_all(self, settings):
        settings.SCHEDULER_METRICS_MAX_JOBS = 0
        make_jobs(2)
        assert {task for _, task, _ in told("scheduler_task_runs_total")} == {"other"}
        Job.objects.all().delete()
        assert told("scheduler_task_runs_total", status="failure", task="other") == {("schedule",): 4}

    @pytest.mark.parametrize("deleted", [[0], [0, 1], [1, 2], [0, 2, 3], [0, 1, 2, 3, 4]])
    def test_no_job_moves_up_when_some_with_labels_are_deleted_so_the_common_label_never_falls_MX1(
        self, settings, clock, deleted
    ):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        jobs, engine = make_jobs(5), make_engine()
        sweep(engine, T0)
        before = told_of_other()
        assert before["scheduler_task_runs_total", "failure"] == 6
        Job.objects.filter(pk__in=[jobs[number].pk for number in deleted]).delete()
        for _ in range(2):
            assert told_of_other() == before
            labels = {task for _, task, _ in told("scheduler_task_runs_total")}
            assert labels == {"other", *({"job 0", "job 1"} - {f"job {number}" for number in deleted})}
            sweep(engine, T0)

    def test_another_limit_gives_the_labels_out_again_MX3(self, settings, clock):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        jobs, engine = make_jobs(5), make_engine()
        sweep(engine, T0)
        jobs[0].delete()
        settings.SCHEDULER_METRICS_MAX_JOBS = 3
        for _ in range(2):
            assert {task for (task,) in told("scheduler_next_run_timestamp_seconds")} == {"job 1", "job 2", "job 3"}
            sweep(engine, T0)
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        assert {task for (task,) in told("scheduler_next_run_timestamp_seconds")} == {"job 1"}

    def test_a_job_that_comes_with_an_old_id_takes_no_label_in_excess_MX3(self, settings, clock):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        jobs, engine = make_jobs(5), make_engine()
        gone = jobs[0].pk
        jobs[0].delete()
        sweep(engine, T0)
        Job.objects.filter(pk=make_job("restored").pk).update(id=gone)
        for _ in range(2):
            assert {task for _, task in told("scheduler_job_state")} == {"restored", "job 1"}
            sweep(engine, T0)
        Job.objects.filter(pk=gone).delete()
        assert {task for _, task in told("scheduler_job_state")} == {"job 1"}

    def test_a_border_is_kept_beyond_the_limit_only_and_costs_no_write_again(self, settings, clock):
        settings.SCHEDULER_METRICS_MAX_JOBS = 2
        make_jobs(2)
        engine = make_engine()
        sweep(engine, T0)
        assert not Tally.objects.filter(job_id=LAST_WITH_LABEL).exists()
        make_job("one more")
        sweep(engine, T0)
        assert Tally.objects.filter(job_id=LAST_WITH_LABEL).count() == 1
        with CaptureQueriesContext(connection) as caught:
            sweep(engine, T0)
        assert not [query["sql"] for query in caught if query["sql"].startswith(("INSERT", "UPDATE"))]

    @pytest.mark.parametrize(("kinds", "seconds"), [(2, 0.1), pytest.param(20, 0.3, marks=pytest.mark.thorough)])
    def test_a_scrape_asks_five_questions_and_is_quick_MX4(self, clock, settings, kinds, seconds):
        """With twenty counters a job 20,000 rows are read, for which drivers take more or less."""
        settings.SCHEDULER_GROUPS = {"serial": 1}
        make_jobs(1000, kinds)
        make_engine()
        render()
        with CaptureQueriesContext(connection) as of_problems:
            survey(T0, {}, own=False)
        with CaptureQueriesContext(connection) as caught:
            render()
        quick_at_best(seconds, render)
        quick_at_best(seconds, lambda: exposition("application/openmetrics-text;version=1.0.0"))
        assert len(caught) <= 2 + len(of_problems) <= 5
        assert not [query["sql"] for query in caught if "scheduler_runlog" in query["sql"].partition("WHERE")[0]]

    def test_no_question_scans_the_runs_MX4(self, clock, settings):
        """With so many of them, and statistics of them, that each database finds its indexes worth it."""
        settings.SCHEDULER_GROUPS = {"serial": 1}
        make_jobs(20)
        make_runs(RUNS_EACH)
        make_engine()
        with CaptureQueriesContext(connection) as caught:
            render()
        asked = [query["sql"] for query in caught if "scheduler_runlog" in query["sql"]]
        assert asked
        for sql in asked:
            assert not scans_of_runs(sql)

    def test_a_scan_of_the_runs_is_found(self):
        """The test before can fail."""
        make_jobs(20)
        make_runs(RUNS_EACH)
        quote = connection.ops.quote_name
        assert scans_of_runs(f"SELECT count(*) FROM {quote('scheduler_runlog')} WHERE {quote('log')} <> 'x'")

    def test_what_the_database_adds_up_is_what_all_rows_say_MX3(self, settings):
        """Jobs beyond the labels are folded by the database: every sum stays the same, of each family."""
        make_jobs(5, kinds=4)
        Tally.objects.create(job_id=GONE, status="succeeded", cause="schedule", count=9, took=3, late=2)
        Tally.objects.create(job_id=GONE_AND_FOLDED, status="missed", count=4)
        Tally.objects.create(job_id=Job.objects.latest("pk").pk, status="skipped", cause="gate", count=6)
        every = samples()
        for most in (0, 2, 5):
            settings.SCHEDULER_METRICS_MAX_JOBS = most
            assert by_name(samples(), "scheduler_runs_total") == by_name(every, "scheduler_runs_total")
            for name in ("scheduler_task_duration_seconds_sum", "scheduler_start_delay_seconds_sum"):
                assert sum(by_name(samples(), name).values()) == pytest.approx(sum(by_name(every, name).values()))
            assert sum(by_name(samples(), "scheduler_task_skipped_total").values()) == 6
            assert told("scheduler_task_missed_total")["other",] == 4


def told_of_other():
    """Return the counters of the common label that are not 0, by their names and status or bound."""
    ends = ("_total", "_bucket", "_count", "_sum")
    return {
        (name, dict(labels).get("status") or dict(labels).get("le", "")): number
        for (name, labels), number in samples().items()
        if ("task", "other") in labels and name.endswith(ends) and number
    }


def by_name(found, name):
    return {key: value for key, value in found.items() if key[0] == name}


class TestNames:
    @pytest.mark.parametrize("name", ['a"b', "c\\d", "任务", "😀", "ü" * 255, "two words", "other"])
    def test_an_odd_name_is_a_label_of_its_own_MX7(self, name):
        make_job("plain")
        make_job(name)
        shown = {task for _, task in told("scheduler_job_state")}
        assert "plain" in shown
        assert len(shown) == 2
        assert name in shown or name == "other"

    def test_one_that_is_no_text_is_cleaned_and_said_once_MX7(self, caplog):
        make_job("plain")
        Job.objects.filter(pk=make_job("odd").pk).update(name="x\ny")
        for _ in range(2):
            assert {task for _, task in told("scheduler_job_state")} == {"plain", "x\\ny"}
        assert [record.action for record in caplog.records if record.name == "scheduler"] == ["label_cleaned"]

    @pytest.mark.skipif(connection.vendor != "sqlite", reason="servers take no text that is none")
    def test_a_lone_surrogate_costs_no_other_series_MX7(self):
        make_job("plain")
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduler_job SET name = CAST(x'78EDB28079' AS TEXT) WHERE id = %s", [make_job("odd").pk]
            )
        shown = {task for _, task in told("scheduler_job_state")}
        assert "plain" in shown
        assert len(shown) == 2


class TestWhole:
    def test_problems_are_told_by_their_codes(self, clock):
        make_job(columns={"broken_at": T0})
        make_engine()
        assert told("scheduler_problems") == {("broken", "degraded"): 1}
        Instance.objects.all().delete()
        assert ("no_instance", "degraded") in told("scheduler_problems")

    def test_how_late_the_latest_is(self, clock):
        make_job()
        make_engine()
        clock.set(at(minutes=10))
        assert told("scheduler_oldest_overdue_seconds") == {(): 540}
        assert ("overdue", "degraded") in told("scheduler_problems")


class TestCollector:
    def test_a_registry_of_the_host_takes_it_without_a_question_MX5(self, django_assert_num_queries):
        registry = prometheus.CollectorRegistry()
        prometheus.Gauge("scheduler_of_the_host", "Something else.", registry=registry)
        with django_assert_num_queries(0):
            registry.register(SchedulerCollector())
        assert b"scheduler_instances" in prometheus.generate_latest(registry)

    def test_nothing_is_in_the_global_registry_MX5(self):
        render()
        render()
        assert not [name for name in prometheus.REGISTRY._names_to_collectors if name.startswith("scheduler_")]


class TestSweep:
    def test_what_a_process_of_the_release_before_counted_is_counted_again_and_said_I12(self, caplog):
        make_job()
        engine = make_engine()
        run_at(engine, at(60))
        Tally.objects.all().delete()
        sweep(engine, at(61))
        sweep(engine, at(62))
        assert told("scheduler_task_runs_total") == {("success", "job", "unknown"): 1}
        assert [record.action for record in caplog.records if record.levelname == "WARNING"] == ["tallies_mended"]

    def test_counters_that_are_ahead_are_never_lowered_MX1(self):
        job = make_job()
        Tally.objects.create(job_id=job.pk, status="succeeded", cause="schedule", count=9)
        sweep(make_engine(), at(61))
        assert told("scheduler_task_runs_total") == {("success", "job", "schedule"): 9}


def test_a_run_that_ends_while_a_sweep_looks_is_counted_once_I12(monkeypatch):
    make_job()
    engine = make_engine()
    claimed = claim_one(engine, at(60))
    from scheduler.engine.mend import tallies

    def look(rows, real=tallies._summed):
        found = real(rows)
        if RunLog.objects.filter(status=Status.RUNNING).exists():
            finish(engine, claimed, at(61))
        return found

    monkeypatch.setattr(tallies, "_summed", look)
    sweep(engine, at(62))
    sweep(engine, at(63))
    assert told("scheduler_task_runs_total") == {("success", "job", "schedule"): 1}


def test_users_who_wait_are_told_by_job(monkeypatch, clock):
    make_job()
    monkeypatch.setattr(figures, "waiting_users", lambda jobs: {"job": 7})
    assert told("scheduler_activity_queue_depth") == {("job",): 7}
    monkeypatch.setattr(figures, "waiting_users", lambda jobs: {"job": None})
    assert told("scheduler_activity_queue_depth") == {}


def test_every_state_has_a_sample():
    states = {dict(labels)["state"] for name, labels in samples() if name == "scheduler_jobs"}
    assert states == set(JobState.values)
