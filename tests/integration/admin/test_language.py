import pytest
from django.core.handlers.base import BaseHandler
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.urls import resolve
from django.utils import translation
from django.utils.translation import gettext

from scheduler.admin.jobs import change_list
from scheduler.schedules import Cron, DailyAt, Every
from tests.factories import make_job
from tests.integration.admin.pages import page, text_of


def test_the_admin_speaks_german(boss, settings):
    settings.LANGUAGE_CODE = "de"
    with translation.override("de"):
        make_job("job", DailyAt(hour=3))
        words = text_of(boss.get(page("job_changelist")))
    for german in ("Jeden Tag um 03:00", "lief noch nie", "geplant", "Keine lebende Instanz", "Aktualisieren"):
        assert german in words


def test_cron_expressions_are_told_in_german():
    with translation.override("de"):
        words = Cron("30 8 * * 1-5", timezone="Europe/Berlin").describe(gettext)
    assert words == "Um 08:30, Montag bis Freitag, Zeit von Europe/Berlin"


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1d", "Jeden Tag"),
        ("1h", "Jede Stunde"),
        ("1m", "Jede Minute"),
        ("1s", "Jede Sekunde"),
        ("2d", "Alle 2 Tage"),
        ("1h30m", "Alle 1 Stunde 30 Minuten"),
    ],
)
def test_intervals_are_told_in_german(text, words):
    with translation.override("de"):
        assert Every(text).describe(gettext) == words


def test_without_its_tables_the_list_says_what_to_run(boss, monkeypatch):
    def fail(*_args: object) -> None:
        raise OperationalError("no such table: scheduler_job")

    monkeypatch.setattr(change_list, "stamp_of_jobs", fail)
    MigrationRecorder(connection).migration_qs.filter(app="scheduler").delete()
    response = boss.get(page("job_changelist"))
    assert response.status_code == 503
    assert "python manage.py migrate scheduler" in text_of(response)


def test_the_list_is_asked_for_in_no_transaction_which_its_first_error_would_break(monkeypatch):
    """With ATOMIC_REQUESTS: PostgreSQL takes no statement after the one that failed, not even to draw a page."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    view = resolve(page("job_changelist")).func
    assert BaseHandler().make_view_atomic(view) is view


def test_a_database_that_is_busy_is_not_told_to_be_migrated(boss, monkeypatch):
    def fail(*_args: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(change_list, "stamp_of_jobs", fail)
    with pytest.raises(OperationalError, match="locked"):
        boss.get(page("job_changelist"))


@pytest.mark.parametrize("name", ["job_changelist", "job_overview", "runlog_changelist", "instance_changelist"])
def test_no_page_carries_script_or_style_of_its_own(boss, name):
    make_job("job")
    body = boss.get(page(name)).text
    assert " style=" not in body
    assert "<style" not in body
    assert "<script>" not in body
    assert "onclick" not in body


def test_the_script_stays_small():
    from pathlib import Path

    script = Path(change_list.__file__).parents[2] / "static" / "scheduler" / "admin.js"
    assert len(script.read_text().splitlines()) < 200
