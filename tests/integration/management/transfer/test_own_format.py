"""Export and import of the own format: nothing is lost on the way, nothing is written by a dry run."""

import json
import stat

import pytest
from django.db import DataError

from scheduler import add_job, get_job, pause_group, pause_job, update_job
from scheduler.definition import COLUMNS
from scheduler.engine.base import Engine
from scheduler.engine.explain.explain_slot import explain_text
from scheduler.engine.sync.follow_code import sync
from scheduler.management.transfer import document as document_keys
from scheduler.management.transfer import writer
from scheduler.models import Job, JobEvent
from scheduler.policy import Misfire
from scheduler.registry import register
from scheduler.schedules.instants import instant_text
from tests.factories import DAY, HOUR, T0

pytestmark = pytest.mark.django_db


@pytest.fixture
def exported(run, tmp_path):
    """Write all jobs, or those named, to a file; returns its path."""

    def write(*arguments):
        path = tmp_path / "jobs.json"
        run("export_schedules", "--output", path, *arguments)
        return path

    return write


def document(*jobs, **more):
    return {"format": "django-inprocess-scheduler", "version": 1, "time_zone": "UTC", "jobs": list(jobs), **more}


@pytest.fixture
def file_of(tmp_path):
    def write(data):
        path = tmp_path / "given.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return write


def some_jobs():
    add_job("nightly", "digest", "cron 30 2 * * * @ Europe/Berlin", kwargs={"days": 7}, retries=3, group="mail")
    add_job("often", "nothing", "every 1h30m", misfire="skip", priority=5, description="often")
    add_job("later", "nothing", "once at 2026-03-05T08:00:00+00:00")
    add_job("off", "nothing", "every 1d", enabled=False)
    pause_job("often", until=T0 + DAY, reason="too loud", actor="ann")


def test_what_is_exported_and_imported_again_is_the_same_to_the_slot(run, exported, outcomes):
    some_jobs()
    before = json.loads(run("export_schedules"))
    path, slots = exported(), {job.name: job.next_run_at for job in Job.objects.all()}
    Job.objects.all().delete()
    assert set(outcomes(path, "--apply").values()) == {"created"}
    assert json.loads(run("export_schedules")) == before
    assert {job.name: job.next_run_at for job in Job.objects.all()} == slots
    assert get_job("nightly").policy.retries == 3
    assert get_job("often").policy.misfire is Misfire.SKIP
    assert (get_job("often").pause_reason, get_job("often").paused_until) == ("too loud", T0 + DAY)


ONE_OF_EACH = [
    {"type": "every", "seconds": 3600, "jitter": 30, "from_completion": True},
    {"type": "daily", "hour": 3, "minute": 5, "second": 7, "timezone": "Asia/Tokyo", "jitter": 60},
    {"type": "weekly", "days": ["mon", "sun"], "hour": 9, "minute": 0},
    {"type": "monthly", "day": -1, "hour": 18, "minute": 0},
    {"type": "cron", "expression": "*/20 0 12 * * 5L"},
    {"type": "once", "at": "2026-12-24T18:00:00+00:00"},
    {"type": "after_jobs", "jobs": ["job 0", "job 1"], "on": "finish"},
    {"type": "manual"},
]
OPTIONS = [
    {"backoff": {"base": 60, "factor": 3, "cap": 7200}, "retries": 3},
    {"backoff": [30, 300], "breaker_threshold": None},
    {"backoff": None, "rate_limit": "10/h"},
    {"overlap": "allow", "max_concurrent": 3, "timeout": 90},
    {"starts_at": "2026-05-01T00:00:00+02:00", "ends_at": "2027-05-01T00:00:00+02:00"},
    {"misfire": "run_all", "max_catch_up": 3, "grace": "2h", "catch_up_window": "1d"},
    {"stuck_after": None, "on_stuck": "abandon", "on_lost": "skip", "gate_closed": "wait"},
    {"executor": "process", "max_runs": 5},
]


def test_every_kind_of_schedule_and_option_goes_and_comes_back(run, exported, outcomes):
    for number, (schedule, options) in enumerate(zip(ONE_OF_EACH, OPTIONS, strict=True)):
        add_job(f"job {number}", "nothing", schedule, **options)
    before = json.loads(run("export_schedules"))
    path, jobs = exported(), {job.name: (job.schedule, job.policy) for job in Job.objects.all()}
    text = json.loads(path.read_text())
    text["jobs"].reverse()
    path.write_text(json.dumps(text))
    Job.objects.all().delete()
    assert set(outcomes(path, "--apply").values()) == {"created"}
    assert json.loads(run("export_schedules")) == before
    assert {job.name: (job.schedule, job.policy) for job in Job.objects.all()} == jobs


def test_jobs_that_would_wait_for_each_other_are_refused(file_of, report):
    jobs = [
        {"name": one, "task": "nothing", "schedule": {"type": "after_jobs", "jobs": [other]}}
        for one, other in (("a", "b"), ("b", "a"))
    ]
    first, second = report(file_of(document(*jobs)), "--apply")["schedules"]
    assert (first["outcome"], second["outcome"]) == ("created", "refused")
    assert "would wait for each other" in second["reason"]


def test_an_export_has_all_that_people_and_code_decide_of_a_job():
    assert {*document_keys.COLUMNS, "schedule", "policy"} == {*COLUMNS, "task"}


def test_importing_twice_changes_nothing(exported, outcomes):
    some_jobs()
    path, versions = exported(), list(Job.objects.values_list("name", "version"))
    assert set(outcomes(path, "--apply", "--replace").values()) == {"unchanged"}
    assert list(Job.objects.values_list("name", "version")) == versions


def test_a_dry_run_writes_nothing_and_says_what_it_would_do(exported, run):
    some_jobs()
    path = exported()
    Job.objects.all().delete()
    JobEvent.objects.all().delete()
    said = run("import_schedules", path)
    assert "4 of 4 schedules would be here: 4 created. Nothing was written: --apply does." in said
    assert "nightly (job 2): cron 30 2 * * * @ Europe/Berlin, next 2026-03-03 01:30:00 UTC" in said
    assert "paused until" in said
    assert not Job.objects.exists()
    assert not JobEvent.objects.exists()


def test_a_job_that_is_here_and_differs_is_kept_unless_it_is_to_be_replaced(exported, report):
    some_jobs()
    path = exported()
    update_job("nightly", schedule="daily at 04:00", retries=1)
    (kept,) = [one for one in report(path, "--apply")["schedules"] if one["outcome"] != "unchanged"]
    assert (kept["name"], kept["outcome"], kept["changes"]) == ("nightly", "kept", ["policy", "schedule"])
    assert get_job("nightly").policy.retries == 1
    assert report(path, "--apply", "--replace")["outcomes"]["replaced"] == 1
    assert get_job("nightly").policy.retries == 3


def test_of_a_job_of_the_code_only_what_people_had_changed_goes_along(exported, outcomes):
    register("report", schedule="every 1h", retries=2)(lambda: None)
    sync(Engine(), T0)
    update_job("report", schedule="every 2h", timeout=60)
    path = exported()
    Job.objects.all().delete()
    sync(Engine(), T0)
    Job.objects.filter(name="report").update(priority=3)
    assert outcomes(path, "--apply", "--replace")["report"] == "replaced"
    job = get_job("report")
    assert job.schedule.period == 2 * HOUR
    assert (job.policy.timeout.seconds, job.policy.retries, job.priority) == (60, 2, 3)
    assert job.overridden_fields == ["policy.timeout", "schedule"]


def test_a_job_that_the_code_has_yet_to_make_is_not_made_a_job_of_people(file_of, report):
    path = file_of(document({"name": "digest", "task": "digest", "schedule": {"type": "every", "seconds": 60}}))
    (one,) = report(path, "--apply")["schedules"]
    assert one["outcome"] == "refused"
    assert "start the scheduler once" in one["reason"]


HOURLY = {"type": "every", "seconds": 3600}


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "shedule": 1}, "Did you mean 'schedule'?"),
        ({"name": "a", "task": "nothing"}, "'schedule' is missing"),
        ({"name": "a/b", "task": "nothing", "schedule": HOURLY}, "write it without /"),
        ({"name": ["a"], "task": "nothing", "schedule": HOURLY}, "the name is ['a']"),
        ({"name": "a", "task": "nothin", "schedule": HOURLY}, "Did you mean 'nothing'?"),
        ({"name": "a", "task": 7, "schedule": HOURLY}, "task is 7; it must be a string"),
        ({"name": "a", "task": "nothing", "schedule": {"type": "evry"}}, "type 'evry' is unknown"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "kwargs": {"x": 1}}, "takes no argument 'x'"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "kwargs": []}, "kwargs is []"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "options": {"retrys": 1}}, "Did you mean 'retries'?"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "options": {"enabled": 1}}, "beside options"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "options": []}, "options is []"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "enabled": "yes"}, "enabled is 'yes'"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "paused": {"until": "soon"}}, "until is 'soon'"),
        ({"name": "a", "task": "nothing", "schedule": HOURLY, "paused": {"until": "2026-01-01"}}, "offset"),
        ("a", "a JSON object, not 'a'"),
    ],
)
def test_a_job_that_is_wrong_is_refused_by_name_and_the_others_go_on(job, reason, file_of, report):
    good = {"name": "good", "task": "nothing", "schedule": HOURLY}
    refused, imported = report(file_of(document(job, good)), "--apply")["schedules"]
    assert refused["outcome"] == "refused"
    assert reason in refused["reason"]
    assert imported["outcome"] == "created"
    assert [job.name for job in Job.objects.all()] == ["good"]


@pytest.mark.parametrize("value", ["garbage", 5, ["x"], "2030-01-01"])
@pytest.mark.parametrize("option", ["starts_at", "ends_at"])
def test_bounds_that_are_no_instants_are_refused_and_change_no_job_that_is_here(option, value, file_of, report):
    add_job("a", "nothing", "every 2h")
    jobs = [{"name": name, "task": "nothing", "schedule": HOURLY, "options": {option: value}} for name in ("a", "new")]
    good = {"name": "good", "task": "nothing", "schedule": HOURLY}
    found = report(file_of(document(*jobs, good)), "--apply", "--replace")["schedules"]
    assert [one["outcome"] for one in found] == ["refused", "refused", "created"]
    assert all(f"{option} " in one["reason"] for one in found[:2])
    assert get_job("a").schedule.period == 2 * HOUR


@pytest.mark.parametrize("first", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+00:00"])
def test_a_job_may_start_at_the_first_instant_there_is(first, file_of, report):
    job = {"name": "a", "task": "nothing", "schedule": HOURLY, "options": {"starts_at": first}}
    (one,) = report(file_of(document(job)), "--apply")["schedules"]
    assert (one["outcome"], one["next_run_at"]) == ("created", instant_text(get_job("a").next_run_at))


@pytest.mark.parametrize(
    ("place", "error"),
    [("compare_job", OverflowError), ("set_job", TypeError), ("pause_job", ValueError), ("pause_job", DataError)],
)
def test_an_entry_that_fails_anywhere_leaves_nothing_behind_and_the_others_go_on(
    place, error, file_of, report, monkeypatch
):
    whole = getattr(writer, place)

    def fail(*args, **kwargs):
        if "bad" in args:
            raise error("odd")
        return whole(*args, **kwargs)

    monkeypatch.setattr(writer, place, fail)
    bad = {"name": "bad", "task": "nothing", "schedule": HOURLY, "paused": {}}
    path = file_of(document(bad, {"name": "good", "task": "nothing", "schedule": HOURLY, "paused": {}}))
    refused, imported = report(path, "--apply")["schedules"]
    assert (refused["outcome"], imported["outcome"]) == ("refused", "created")
    assert refused["reason"] == f"{error.__name__}: odd"
    assert [job.name for job in Job.objects.all()] == ["good"]


def test_a_paused_job_is_never_here_without_its_pause(file_of, report, monkeypatch):
    def die(*args, **kwargs):
        raise KeyboardInterrupt

    job = {"name": "a", "task": "nothing", "schedule": HOURLY, "paused": {"until": None, "reason": "broken pipe"}}
    path = file_of(document(job))
    with monkeypatch.context() as patch:
        patch.setattr(writer, "pause_job", die)
        with pytest.raises(KeyboardInterrupt):
            report(path, "--apply")
    assert not Job.objects.exists()
    assert report(path, "--apply")["outcomes"]["created"] == 1
    assert get_job("a").pause_reason == "broken pipe"


@pytest.mark.parametrize("until", [None, T0 + DAY])
def test_a_pause_that_is_missing_or_ends_otherwise_is_a_difference(until, file_of, report):
    add_job("a", "nothing", "every 1h")
    schedule = get_job("a").schedule.to_dict()
    paused = {"until": until and until.isoformat(), "reason": "moves", "by": "ann"}
    path = file_of(document({"name": "a", "task": "nothing", "schedule": schedule, "paused": paused}))
    (kept,) = report(path, "--apply")["schedules"]
    assert (kept["outcome"], kept["changes"]) == ("kept", ["paused"])
    assert get_job("a").paused_at is None
    assert report(path, "--replace")["outcomes"]["replaced"] == 1
    assert get_job("a").paused_at is None, "a dry run pauses nothing"
    (paused,) = report(path, "--apply", "--replace")["schedules"]
    assert (paused["outcome"], paused["next_run_at"]) == ("replaced", None)
    assert (get_job("a").paused_until, get_job("a").paused_by) == (until, "ann")
    assert report(path, "--apply", "--replace")["outcomes"]["unchanged"] == 1
    pause_job("a", until=T0 + 2 * DAY)
    assert report(path, "--apply")["schedules"][0]["changes"] == ["paused"]


def test_a_pause_that_has_ended_is_no_difference(file_of, report):
    add_job("a", "nothing", "every 1h")
    job = {"name": "a", "task": "nothing", "schedule": get_job("a").schedule.to_dict()}
    path = file_of(document(job | {"paused": {"until": (T0 - HOUR).isoformat()}}))
    assert report(path, "--apply", "--replace")["outcomes"]["unchanged"] == 1


def test_jobs_that_are_here_are_read_together_by_a_dry_run(file_of, report, django_assert_max_num_queries):
    jobs = [{"name": f"job {number}", "task": "nothing", "schedule": HOURLY} for number in range(20)]
    add_job("job 3", "nothing", "every 2h")
    with django_assert_max_num_queries(5):
        outcomes = report(file_of(document(*jobs)))["outcomes"]
    assert (outcomes["created"], outcomes["kept"]) == (19, 1)


def test_one_name_twice_is_refused_the_second_time(file_of, report):
    job = {"name": "good", "task": "nothing", "schedule": HOURLY}
    one, other = report(file_of(document(job, job)))["schedules"]
    assert (one["outcome"], other["reason"]) == ("created", "job 1 has the same name.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "--from"),
        ('{"format": "django-inprocess-scheduler", "version": 2, "jobs": []}', "has version 2 of the format"),
        ('{"format": "django-inprocess-scheduler", "version": true, "jobs": []}', "version of the file is True"),
        ('{"format": "django-inprocess-scheduler", "version": 1}', 'no list "jobs"'),
        ('{"format": "a", "format": "b"}', "'format' stands twice"),
        ('{"format": NaN}', "NaN is no number"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_that_is_none_is_one_clear_error(text, reason, file_of, refusal):
    assert reason in refusal("import_schedules", file_of(text))


def test_a_file_that_is_not_there_is_one_clear_error(refusal, tmp_path):
    assert "No such file" in refusal("import_schedules", tmp_path / "none.json")
    assert "Say which file" in refusal("import_schedules")
    assert "cannot be written" in refusal("export_schedules", "--output", tmp_path / "none" / "x.json")


def test_a_one_off_that_has_passed_is_left_out_and_never_runs(file_of, report):
    past = {"type": "once", "at": "2026-03-01T00:00:00+00:00"}
    ended = {"name": "b", "task": "nothing", "schedule": HOURLY, "options": {"ends_at": "2026-03-01T00:00:00+00:00"}}
    found = report(file_of(document({"name": "a", "task": "nothing", "schedule": past}, ended)), "--apply")
    assert [one["outcome"] for one in found["schedules"]] == ["over", "over"]
    assert not Job.objects.exists()


def test_a_one_off_that_has_passed_replaces_no_job_which_would_run_at_once(file_of, report):
    add_job("a", "nothing", "every 1h")
    past = {"type": "once", "at": "2026-03-01T00:00:00+00:00"}
    data = document({"name": "a", "task": "nothing", "schedule": past})
    (one,) = report(file_of(data), "--apply", "--replace")["schedules"]
    assert one["outcome"] == "over"
    assert get_job("a").schedule.period == HOUR


def test_a_job_of_the_code_keeps_the_task_that_people_gave_it(exported, outcomes):
    register("report", schedule="every 1h")(lambda: None)
    sync(Engine(), T0)
    update_job("report", task="nothing")
    path = exported()
    update_job("report", priority=2)
    assert outcomes(path, "--apply", "--replace")["report"] == "unchanged", "the priority is none of what had changed"
    Job.objects.all().delete()
    sync(Engine(), T0)
    assert outcomes(path, "--apply", "--replace")["report"] == "replaced"
    assert get_job("report").task == "nothing"


def test_the_first_slot_is_after_starts_at(file_of, report):
    options = {"starts_at": "2026-03-04T08:30:00+00:00"}
    job = {"name": "a", "task": "nothing", "schedule": {"type": "daily", "hour": 3, "minute": 0}, "options": options}
    (one,) = report(file_of(document(job)), "--apply")["schedules"]
    assert one["next_run_at"] == "2026-03-05T03:00:00Z"
    assert instant_text(get_job("a").next_run_at) == one["next_run_at"]


def test_a_closed_gate_refuses_a_dry_run_too(file_of, report):
    register("gated", gate=lambda: "no licence")(lambda: None)
    job = {"name": "a", "task": "gated", "schedule": HOURLY}
    for arguments in ([], ["--apply"]):
        (one,) = report(file_of(document(job)), *arguments)["schedules"]
        assert "no licence" in one["reason"]


def test_what_holds_for_the_whole_file_is_said(file_of, report):
    pause_group("mail", reason="server moves")
    data = document(time_zone="Europe/Berlin", paused_groups=[{"name": "mail", "reason": "server moves"}, {"name": ""}])
    zone, mail, everything = report(file_of(data))["notes"]
    assert "followed 'Europe/Berlin' there; they follow UTC here" in zone
    assert "'mail' was paused there: 'server moves'" in mail
    assert everything.startswith("Everything was paused there")


def test_tasks_are_mapped_by_a_file(file_of, report, tmp_path):
    mapping = tmp_path / "tasks.json"
    mapping.write_text('{"old.task": "nothing", "useless": null}')
    jobs = [{"name": task, "task": task, "schedule": HOURLY} for task in ("old.task", "useless", "unknown")]
    found = report(file_of(document(*jobs)), "--apply", "--tasks", mapping)["schedules"]
    assert [one["outcome"] for one in found] == ["created", "over", "refused"]
    assert found[0]["notes"] == ["the task old.task is nothing here"]
    assert '{"unknown": "its name here"}' in found[2]["reason"]


def test_strict_ends_with_1_where_something_was_refused(file_of, refusal):
    job = {"name": "a", "task": "unknown", "schedule": HOURLY}
    assert refusal("import_schedules", file_of(document(job)), "--strict", code=1) == "Schedules that were refused: 1."


def test_a_mapping_that_is_none_is_one_clear_error(file_of, refusal):
    assert "must be a JSON object of names" in refusal("import_schedules", "-", "--tasks", file_of('{"a": 1}'))
    assert "cannot be read" in refusal("import_schedules", "-", "--tasks", file_of("{"))


def test_the_history_and_why_say_that_a_job_was_imported(exported, outcomes):
    add_job("old", "nothing", "daily at 12:00")
    path = exported()
    Job.objects.all().delete()
    outcomes(path, "--apply")
    assert [event.actor for event in get_job("old").events.filter(kind="created")] == ["import"]
    answer = explain_text(get_job("old"), "2026-03-01 12:00", now=T0)
    assert "created by import at" in answer.sentence


def test_a_file_is_read_by_its_owner_only_and_named_jobs_are_all_it_holds(exported, run):
    some_jobs()
    path = exported("later", "off", "--json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [job["name"] for job in json.loads(path.read_text())["jobs"]] == ["later", "off"]


def test_jobs_of_people_can_be_had_alone(run):
    register("coded", schedule="every 1h")(lambda: None)
    sync(Engine(), T0)
    some_jobs()
    names = {job["name"] for job in json.loads(run("export_schedules", "--people"))["jobs"]}
    assert "coded" not in names
    assert "nightly" in names


def test_a_job_that_cannot_be_read_is_named_and_nothing_is_written(refusal, tmp_path):
    add_job("bent", "nothing", "every 1d")
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduler_job SET schedule = '{}'")
    assert "'bent' cannot be exported" in refusal("export_schedules", "--output", tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_no_keyword_argument_stands_in_a_report(file_of, run):
    job = {"name": "a", "task": "digest", "schedule": HOURLY, "kwargs": {"to": "s3cret"}}
    add_job("a", "digest", "every 2h", kwargs={"to": "other"})
    path = file_of(document(job))
    assert "s3cret" not in run("import_schedules", path) + run("import_schedules", path, "--json", "--replace")


def test_of_a_job_that_stays_as_it_is_nothing_is_said_of_a_beginning(file_of, report):
    add_job("a", "nothing", "every 1h", max_runs=9)
    job = {"name": "a", "task": "nothing", "schedule": get_job("a").schedule.to_dict(), "state": "broken"}
    path = file_of(document(job | {"options": {"max_runs": 9}}, job | {"name": "b", "options": {"max_runs": 9}}))
    unchanged, created = report(path)["schedules"]
    assert (unchanged["outcome"], unchanged["notes"], unchanged["next_run_at"]) == ("unchanged", [], None)
    assert (created["outcome"], len(created["notes"])) == ("created", 2)
    assert created["next_run_at"]
