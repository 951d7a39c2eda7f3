"""Tasks registered with `confirm` ask once more before a person runs them; all others run at once."""

import pytest

from scheduler.models import RunLog
from scheduler.registry import register, registry
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of, told
from tests.integration.admin.test_actions import do

pytestmark = pytest.mark.usefixtures("task")
WORDS = "Sends a mail to <every> customer."


@pytest.fixture
def mail():
    """A job whose task wants to be confirmed."""
    register("mail", confirm=WORDS)(lambda: None)
    yield make_job("mail", task="mail")
    registry.remove("mail")


def test_a_marked_job_asks_on_a_page_of_the_server_and_runs_after_the_second_yes(boss, mail):
    response = boss.post(page("job_run", mail.pk), headers={"Referer": "http://testserver" + page("job_changelist")})
    assert response.status_code == 200
    assert "Sends a mail to <every> customer." in text_of(response)
    assert not RunLog.objects.exists()
    answer = boss.post(page("job_run", mail.pk), {"confirmed": "1", "next": page("job_changelist")})
    assert answer.url == page("job_changelist")
    assert told(answer) == ["“mail”: Asked to run now."]
    assert RunLog.objects.get().job == mail


def test_the_button_of_a_marked_job_says_that_a_question_follows(boss, mail):
    assert "Run now… mail" in text_of(boss.get(page("job_changelist"), {"q": "mail"}))
    assert "Run now… calm" not in text_of(boss.get(page("job_page", make_job("calm").pk)))


def test_the_bulk_action_asks_once_for_all_and_starts_none_before(boss, mail):
    calm = make_job("calm")
    response = do(boss, "run_now", mail, calm)
    words = text_of(response)
    assert "mail" in words
    assert "1 other job was chosen" in words
    assert response.text.count('name="_selected_action"') == 2
    assert not RunLog.objects.exists()
    do(boss, "run_now", mail, calm, confirmed="1")
    assert {run.job.name for run in RunLog.objects.all()} == {"mail", "calm"}


def test_all_jobs_chosen_across_pages_carry_no_list_of_ids(boss, mail):
    jobs = [mail, *(make_job(f"job{n}") for n in range(3))]
    response = do(boss, "run_now", *jobs, select_across="1")
    assert response.text.count('name="_selected_action"') == 1
    do(boss, "run_now", mail, select_across="1", confirmed="1")
    assert RunLog.objects.count() == 4


def test_a_mark_without_words_shows_what_the_job_does(boss):
    register("bare", confirm=True)(lambda: None)
    try:
        job = make_job("bare", task="bare", columns={"description": "Drops the tables."})
        assert "Drops the tables." in text_of(boss.post(page("job_run", job.pk)))
    finally:
        registry.remove("bare")
    assert not RunLog.objects.exists()


def test_who_may_not_run_is_not_even_asked(viewer, mail):
    assert viewer.post(page("job_run", mail.pk)).status_code == 403


def test_the_way_back_from_a_bulk_question_is_the_list(boss, mail):
    assert f'href="{page("job_changelist")}">No, take me back' in do(boss, "run_now", mail).text
    assert f'href="{page("job_changelist")}">No, take me back' in do(boss, "pause", mail).text
