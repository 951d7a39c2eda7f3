"""The beat_schedule dict of Celery: of the settings, or of an app. Celery itself is not needed."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from scheduler import get_job
from scheduler.models import Job
from tests.factories import T0
from tests.importing.compare import slots_until

pytestmark = pytest.mark.django_db


class crontab:  # noqa: N801 - as in Celery
    """What an importer sees of Celery's crontab."""

    nowfun = None

    def __init__(self, **fields):
        for name in ("minute", "hour", "day_of_month", "month_of_year", "day_of_week"):
            setattr(self, f"_orig_{name}", fields.get(name, "*"))
            setattr(self, name, set())


@pytest.fixture
def found(report, settings):
    def read(schedule, *arguments, **more):
        for name, value in ({"CELERY_BEAT_SCHEDULE": schedule} | more).items():
            setattr(settings, name, value)
        return report("--from", "celery", *arguments)["schedules"]

    return read


def entry(schedule, **more):
    return {"task": "digest", "schedule": schedule, **more}


SCHEDULES = [
    (30, "every 30s"),
    (12.5, "every 12.5s"),
    (timedelta(hours=2), "every 2h"),
    (SimpleNamespace(run_every=timedelta(days=1), relative=False), "every 1d"),
    (crontab(minute=0, hour=3), "cron 0 3 * * * @ UTC"),
    (crontab(minute="*/10", day_of_week={1, 2}), "cron */10 * * * 1,2 @ UTC"),
    (crontab(minute=0, day_of_week=[1, 2]), "cron 0 * * * 1,2 @ UTC"),
    (crontab(minute=0, day_of_week="Sunday"), "cron 0 * * * 0 @ UTC"),
]


def test_each_form_of_a_schedule_is_read(found):
    rows = found({f"entry {number}": entry(one) for number, (one, _) in enumerate(SCHEDULES)}, "--apply")
    assert [row["schedule_text"] for row in rows] == [text for _, text in SCHEDULES]
    assert {row["outcome"] for row in rows} == {"created"}
    assert get_job("entry 2").next_run_at == T0 + timedelta(hours=2)


def test_an_hour_without_a_minute_is_sixty_runs_as_it_was_and_told_IM1(found):
    (row,) = found({"a": entry(crontab(hour=11, day_of_week="mon"))}, "--apply")
    assert [note for note in row["notes"] if "60 times" in note]
    hour = T0.replace(day=9, hour=11)
    assert slots_until(get_job("a"), T0 + timedelta(days=9)) == {hour + timedelta(minutes=each) for each in range(60)}


@pytest.mark.parametrize(
    ("more", "zone"),
    [
        ({"CELERY_TIMEZONE": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({}, "UTC"),
        ({"CELERY_ENABLE_UTC": False, "TIME_ZONE": "Europe/Rome"}, "Europe/Rome"),
    ],
)
def test_the_zone_is_that_of_celery_whatever_that_of_the_project_is(more, zone, found):
    (row,) = found({"a": entry(crontab(minute=0, hour=3))}, **more)
    assert row["schedule_text"].endswith(f"@ {zone}")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry(SimpleNamespace(event="sunrise", lat=-37.81, lon=144.96)), "sunrise at -37.81, 144.96"),
        (entry(object()), "a schedule of your own"),
        (entry(None), "None is a schedule of your own"),
        (entry(True), "True is a schedule of your own"),
        (entry(0), "must be longer than zero"),
        (entry(60, args="x"), "args is no list"),
        (entry(60, kwargs=["x"]), "kwargs is no dict"),
        (entry(60, options="x"), "options is no dict"),
        (entry(60, args=[1, 2, 3]), "3 arguments are given by position"),
        (entry(60, kwargs={"days": object()}), "its values must be JSON"),
        (entry(60, task="gone"), "No task 'gone' is registered"),
        ("digest", "An entry is a dict"),
    ],
)
def test_what_cannot_be_carried_over_is_refused_by_name_and_the_others_go_on(wrong, reason, found):
    refused, good = found({"wrong": wrong, "good": entry(60)}, "--apply")
    assert (refused["outcome"], good["outcome"]) == ("refused", "created")
    assert reason in refused["reason"]
    assert refused["name"] == "wrong"


def test_how_messages_are_sent_is_lost_and_told(found):
    options = {"queue": "mail", "expires": 300, "countdown": 5}
    (row,) = found({"a": entry(60, options=options, args=("7",), relative=True)}, "--apply")
    for told in ("queue ('mail')", "the option countdown", "expires after 5 min", "relative"):
        assert any(told in note for note in row["notes"]), told
    job = get_job("a")
    assert (job.kwargs, job.policy.grace, str(job.policy.misfire)) == ({"days": "7"}, timedelta(minutes=5), "skip")


APP = SimpleNamespace(conf=SimpleNamespace(beat_schedule={"of app": entry(crontab(minute=0))}), timezone="Asia/Tokyo")
DICT = {"of dict": entry(60)}


def test_an_app_or_a_dict_is_named_as_in_python(report):
    (of_app,) = report("--from", "celery", f"{__name__}:APP")["schedules"]
    assert (of_app["name"], of_app["schedule_text"]) == ("of app", "cron 0 * * * * @ Asia/Tokyo")
    (of_dict,) = report("--from", "celery", f"{__name__}:DICT")["schedules"]
    assert of_dict["name"] == "of dict"


@pytest.mark.parametrize("name", ["nowhere:app", f"{__name__}:nothing", f"{__name__}:T0", "", "a b", "..:x"])
def test_what_is_no_beat_schedule_is_one_clear_error(name, refusal):
    assert "module:name" in refusal("import_schedules", "--from", "celery", name)
    assert not Job.objects.exists()
