"""The lists are filtered by what they offer, and by nothing else that an address may say."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from scheduler.admin import JobAdmin
from scheduler.clock import SYSTEM_CLOCK
from scheduler.models import Instance, Job, RunLog, Status
from tests.factories import make_job
from tests.integration.admin.pages import page

pytestmark = pytest.mark.usefixtures("task")
HOSTILE = "(a%2B)%2B$"
LISTS = {
    "job": ["name__regex", "name__iregex", "description__regex", "kwargs__api_key__startswith", "kwargs__isnull", "id",
            "state__x", "runs__error__contains", "runs__kwargs__token", "task__regex", "task__in", "nothing",
            "policy__gt", "name__nothing"],
    "runlog": ["error__regex", "log__contains", "job__name", "job__name__regex", "job__kwargs__api_key__startswith",
               "kwargs__token__startswith", "status__regex", "job_id", "scheduled_for__gte"],
    "instance": ["host", "host__regex", "tasks__contains", "pid__gt", "id__regex"],
}  # fmt: skip


@pytest.fixture
def job(db):
    now = SYSTEM_CLOCK.now()
    job = make_job("a" * 40, columns={"kwargs": {"api_key": "geheim"}, "group": "night"})
    RunLog.objects.create(job=job, scheduled_for=now, status=Status.FAILED, error="a" * 40)
    Instance.objects.create(host="a" * 40, pid=1, started_at=now, heartbeat_at=now)
    return job


@pytest.mark.parametrize(("model", "lookup"), [(model, one) for model, names in LISTS.items() for one in names])
@pytest.mark.parametrize("value", [HOSTILE, "g", "1", "[]"])
def test_no_lookup_that_the_list_does_not_offer_is_asked(viewer, job, model, lookup, value):
    assert viewer.get(f"/admin/scheduler/{model}/?{lookup}={value}").status_code == 400


def test_an_action_under_such_a_lookup_is_refused_too(boss, job):
    sent = {"action": "reset", "_selected_action": job.pk}
    assert boss.post("/admin/scheduler/job/?kwargs__api_key__startswith=g", sent).status_code == 400


@pytest.mark.parametrize(
    "address",
    [
        "job/?state=broken", "job/?task=task", "job/?group=night", "job/?group__isnull=False", "job/?q=a&o=1.-4&p=0",
        "runlog/?status__exact=failed", "runlog/?trigger__exact=schedule", "runlog/?period=day", "runlog/?job={pk}",
        "runlog/?q=a&before=5", "instance/?o=7",
    ],
)  # fmt: skip
def test_what_the_list_offers_is_found(viewer, job, address):
    assert viewer.get(f"/admin/scheduler/{address.format(pk=job.pk)}").status_code == 200


def test_a_filter_that_a_project_adds_is_offered(rf, db, job):
    class WithPriority(JobAdmin):
        list_filter = (*JobAdmin.list_filter, "priority")
        date_hierarchy = "created_at"

    request = rf.get("/", {"priority": "0", "created_at__year": "2026"})
    request.user = User.objects.create_superuser("root")
    changelist = WithPriority(Job, admin.site).get_changelist_instance(request)
    assert list(changelist.result_list) == [job]


@pytest.mark.parametrize(
    "search", ["x " * 5000, "x" * 501, "\ud800".encode("utf-8", "surrogatepass").decode("latin1") * 300]
)
@pytest.mark.parametrize("model", ["job", "runlog"])
def test_a_search_without_end_finds_nothing(viewer, job, model, search):
    response = viewer.get(f"/admin/scheduler/{model}/", {"q": search})
    assert response.status_code == 200
    assert response.context_data["cl"].result_count == 0


def test_an_order_without_end_is_refused_as_any_wrong_one(viewer, job):
    assert viewer.get("/admin/scheduler/job/", {"o": "1." * 3000}).url.endswith("?e=1")


@pytest.mark.parametrize("name", ["kwargs", "name", "state", "job__kwargs"])
def test_a_popup_hands_out_the_key_of_a_row_and_nothing_else(boss, job, name):
    assert boss.get(page("job_changelist"), {"_popup": "1", "_to_field": name}).status_code == 400
    assert boss.get(page("job_change", job.pk), {"_popup": "1", "_to_field": name}).status_code == 400


@pytest.mark.parametrize("term", ["x " * 5000, "a\0b"])
def test_an_autocomplete_field_of_another_app_finds_nothing_for_a_search_without_end(boss, job, term):
    asked = {"app_label": "scheduler", "model_name": "runlog", "field_name": "job", "term": term}
    response = boss.get(reverse("admin:autocomplete"), asked)
    assert response.status_code == 200
    assert response.json()["results"] == []
