"""The page of notifications: channels with their last outcome, what people were told, and a test of a channel."""

import pytest
from django.utils import translation

from scheduler.models import Notice, NoticeChannel, NoticeDelivery
from tests.factories import T0, at, make_job
from tests.integration.admin.pages import page

pytestmark = pytest.mark.django_db
TOKEN = "T0K3N-of-the-path"


@pytest.fixture
def told(settings, stop_clock):
    settings.SCHEDULER_NOTIFY = [
        {"channel": "email", "to": ["ops@example.com"]},
        {"channel": "slack", "secret_url": f"https://hooks.example.com/services/{TOKEN}"},
    ]
    settings.SCHEDULER_SECRET_PINGS = {"sync": f"https://hc-ping.com/{TOKEN}"}
    stop_clock(at(600))
    job = make_job("sync")
    texts = {"en": {"title": "sync has failed", "cause": "It <failed>."}, "de": {"title": "sync ist fehlgeschlagen"}}
    notice = Notice.objects.create(key="k", kind="failed", job_id=job.pk, name="sync", at=T0, data={"texts": texts})
    NoticeDelivery.objects.create(notice=notice, channel="email", sent_at=at(1))
    NoticeDelivery.objects.create(notice=notice, channel="slack", due_at=T0)
    NoticeChannel.objects.create(name="email", last_ok_at=at(1))
    NoticeChannel.objects.create(name="slack", last_error_at=at(2), last_error="HTTP 503: no", failures=2)
    return job


def test_it_shows_channels_and_what_was_told(boss, told):
    text = boss.get(page("notice_changelist")).rendered_content
    shown = [
        "ops@example.com", "hooks.example.com (", "hc-ping.com (", "HTTP 503: no", "sync has failed",
        "It &lt;failed&gt;.", "Send a test",
    ]  # fmt: skip
    for part in shown:
        assert part in text, part
    assert page("job_page", told.pk) in text
    assert TOKEN not in text


def test_an_end_whose_alert_was_given_up_does_not_wait(boss, told):
    end = Notice.objects.create(key="end:1", kind="recovered", job_id=told.pk, name="sync", at=T0, data={})
    NoticeDelivery.objects.create(notice=end, channel="slack", due_at=None)
    assert "not told, since its alert was not" in boss.get(page("notice_changelist")).rendered_content


def test_they_have_one_name_in_the_whole_admin(boss, told):
    for name in ("index", "app_list", "job_changelist", "notice_changelist"):
        address = {"index": "/admin/", "app_list": "/admin/scheduler/"}.get(name) or page(name)
        text = boss.get(address).content.decode()
        assert "Notices" in text, name
        assert "Notification" not in text, name


def test_it_is_in_the_language_of_the_reader(boss, told):
    response = boss.get(page("notice_changelist"))
    with translation.override("de-at"):
        text = response.rendered_content
    assert "sync ist fehlgeschlagen" in text


def test_the_list_of_jobs_leads_there_where_channels_are_set(boss, told, settings):
    address = page("notice_changelist")
    assert address in boss.get(page("job_changelist")).rendered_content
    settings.SCHEDULER_NOTIFY, settings.SCHEDULER_SECRET_PINGS = [], {}
    assert address not in boss.get(page("job_changelist")).rendered_content
    assert boss.get(address).status_code == 403


def test_a_test_waits_for_the_running_scheduler_and_no_request_for_a_server(boss, told, settings):
    answer = boss.post(page("notice_test"), {"channel": "email"}, follow=True)
    assert "A test is on its way to email" in answer.content.decode()
    waiting = NoticeDelivery.objects.get(notice__kind="test")
    assert (waiting.channel, waiting.due_at) == ("email", at(600))
    assert waiting.notice.data["texts"][settings.LANGUAGE_CODE]["title"] == "This is a test that boss asked for."


@pytest.mark.parametrize("name", ["pigeon", "", "x" * 200, "ping:1"])
def test_a_test_of_what_is_no_channel_is_refused(boss, told, name):
    assert (
        "No channel has this name." in boss.post(page("notice_test"), {"channel": name}, follow=True).content.decode()
    )
    assert not Notice.objects.filter(kind="test").exists()


def test_who_may_only_look_sends_no_test(viewer, told):
    assert "Send a test" not in viewer.get(page("notice_changelist")).rendered_content
    assert viewer.post(page("notice_test"), {"channel": "email"}).status_code == 403


def test_a_look_by_get_sends_nothing(boss, told):
    boss.get(page("notice_test"), {"channel": "email"})
    assert not Notice.objects.filter(kind="test").exists()


def test_a_wrong_setting_is_told_on_the_page_without_its_value(boss, told, settings):
    settings.SCHEDULER_NOTIFY = [{"channel": "slack", "secret_url": f"ftp://x/{TOKEN}"}]
    text = boss.get(page("notice_changelist")).rendered_content
    assert "SCHEDULER_NOTIFY[0]: secret_url must begin with https://" in text
    assert TOKEN not in text


def test_rows_that_cannot_be_read_are_shown_as_far_as_they_can(boss, told):
    Notice.objects.update(data={"texts": [1]}, kind="odd")
    assert boss.get(page("notice_changelist")).status_code == 200


def test_the_page_makes_as_many_queries_for_many_notices_as_for_one(boss, told, django_assert_max_num_queries):
    for number in range(30):
        notice = Notice.objects.create(key=f"k{number}", kind="failed", name="sync", at=T0, data={})
        NoticeDelivery.objects.create(notice=notice, channel="email", sent_at=T0)
    with django_assert_max_num_queries(20):
        boss.get(page("notice_changelist")).render()
