"""The view: who sees the metrics, in which format, and what happens without a database or without the package."""

import subprocess
import sys

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from scheduler import metrics as package
from scheduler.exceptions import ConfigurationError
from scheduler.metrics.views import metrics
from tests.factories import at, make_engine, make_job, run_at

pytestmark = pytest.mark.django_db
TOKEN = {"authorization": "Bearer secret"}


@pytest.fixture
def ask(rf, settings):
    settings.SCHEDULER_HEALTH_TOKEN = "secret"
    return lambda **headers: metrics(rf.get("/metrics/", headers=headers))


class TestWhoSees:
    @pytest.fixture(autouse=True)
    def installed(self):
        pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

    def test_strangers_are_told_what_to_send(self, ask):
        for answer in (ask(), ask(authorization="Bearer guess")):
            assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
            assert b"scheduler_" not in answer.content

    def test_who_has_the_token(self, ask):
        make_job("daily report")
        answer = ask(**TOKEN)
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain; version=")
        assert b'task="daily report"' in answer.content
        assert "no-store" in answer["Cache-Control"]

    def test_staff(self, rf):
        request = rf.get("/metrics/")
        request.user = User(is_staff=True, is_active=True)
        assert metrics(request).status_code == 200

    def test_everybody_while_debugging(self, ask, settings):
        settings.DEBUG = True
        assert ask().status_code == 200

    def test_a_scraper_that_asks_for_openmetrics_gets_it(self, ask):
        answer = ask(**TOKEN, accept="application/openmetrics-text;version=1.0.0")
        assert answer["Content-Type"].startswith("application/openmetrics-text")
        assert answer.content.endswith(b"# EOF\n")

    @pytest.mark.parametrize("accept", ["", "text/plain;version=1.0.0", "application/openmetrics-text;version=1.0.0"])
    def test_each_format_is_written_as_prometheus_client_writes_it_MX7(self, monkeypatch, accept):
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder

        from scheduler.metrics.exposition import exposition

        make_job('a"b')
        run_at(make_engine(), at(60))
        for name in ("c\\d", "任务 😀", "plain"):
            make_job(name)
        collector = package.SchedulerCollector()
        found = [*collector.collect()]
        monkeypatch.setattr(package.SchedulerCollector, "collect", lambda self: found)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        encode, content_type = choose_encoder(accept)
        assert exposition(accept) == (encode(registry), content_type)

    def test_nobody_posts(self, rf):
        assert metrics(rf.post("/metrics/")).status_code == 405

    def test_a_database_that_is_away_is_a_503(self, ask, monkeypatch):
        def away(*_):
            raise OperationalError("gone")

        monkeypatch.setattr(package.SchedulerCollector, "collect", away)
        assert ask(**TOKEN).status_code == 503


def test_without_the_package_one_error_names_the_extra(ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "scheduler.metrics.exposition", raising=False)
    with pytest.raises(ConfigurationError, match=r"\[metrics\]"):
        ask(**TOKEN)


ALONE = """
import sys, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["scheduler"], DATABASES={}, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
import scheduler
django.setup()
assert not [name for name in sys.modules if name.startswith(("scheduler.metrics", "prometheus_client"))]
import scheduler.metrics
import scheduler.metrics as twice
django.setup()
assert "prometheus_client" not in sys.modules
"""


def test_nothing_is_loaded_or_asked_before_the_first_scrape_MX5():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
