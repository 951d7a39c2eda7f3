"""The view of django-health-check fails while due work is not being run."""

import pytest

pytest.importorskip("health_check", reason="django-health-check is not installed")

from django.urls import path
from health_check.views import HealthCheckView

from scheduler.health import SchedulerStatus
from scheduler.problems import Problem
from tests.factories import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]
urlpatterns = [path("ht/", HealthCheckView.as_view(checks=["scheduler.contrib.health_check.Scheduler"]))]


def asked(client):
    return client.get("/ht/?format=json", headers={"accept": "application/json"})


@pytest.mark.parametrize("status", ["ok", "disabled"])
def test_where_all_is_well_it_says_so(client, monkeypatch, status):
    monkeypatch.setattr("scheduler.contrib.health_check.get_scheduler_status", lambda: SchedulerStatus(status))
    answer = asked(client)
    assert (answer.status_code, list(answer.json().values())) == (200, ["OK"])


def test_where_nothing_runs_what_is_due_it_fails_and_names_the_problem_but_no_job(client):
    make_job("secret-job")
    answer = asked(client)
    assert answer.status_code == 500
    (told,) = answer.json().values()
    assert "degraded: " in told
    assert "overdue" in told
    assert "secret" not in told


def test_the_texts_of_problems_stay_inside(client, monkeypatch):
    problem = Problem("broken", "error", "secret-job", "its secret")
    status = SchedulerStatus("degraded", problems=[problem])
    monkeypatch.setattr("scheduler.contrib.health_check.get_scheduler_status", lambda: status)
    answer = asked(client)
    assert answer.status_code == 500
    assert "degraded: broken" in answer.text
    assert "secret" not in answer.text
