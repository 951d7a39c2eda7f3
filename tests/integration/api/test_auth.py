"""Who is let in: a token of the header, else a session with its CSRF token, never both. No token is told anywhere."""

import json
import logging
import sys

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.core.signals import got_request_exception
from django.db import connection
from django.test import Client, RequestFactory
from django.views.debug import ExceptionReporter
from ninja.security import django_auth

from scheduler.api.auth import TokenAuth
from scheduler.models import ApiToken, Job, JobEvent, RunLog, Scope
from scheduler.registry import register
from scheduler.tokens import last_use
from scheduler.tokens.issue import create_token, revoke_token
from tests.factories import make_job
from tests.integration.api.conftest import ROOT, Caller

pytestmark = pytest.mark.django_db

PAUSE = "/schedule/job/pause"


@pytest.fixture(autouse=True)
def job(monkeypatch):
    monkeypatch.setattr(last_use, "_tried", {})
    monkeypatch.setattr(last_use, "_waiting", set())
    register("task")(lambda **kwargs: None)
    return make_job()


@pytest.fixture
def writer():
    """A token that may do everything."""
    return create_token("deploy", scope=Scope.WRITE)[1]


@pytest.fixture
def reader():
    return create_token("grafana")[1]


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def strict(user=None):
    """A caller whose requests have to have what those of a browser have."""
    caller = Caller(user)
    client = Client(enforce_csrf_checks=True)
    client.cookies = caller.client.cookies
    caller.client = client
    return caller


def refused(answer):
    return answer.status_code, answer.data["code"]


class TestTokens:
    def test_one_opens(self, writer):
        assert Caller().get("/schedule", **bearer(writer)).status_code == 200
        assert Caller().post(PAUSE, {}, **bearer(writer)).status_code == 200

    @pytest.mark.parametrize(
        "header", ["Bearer", "Bearer ", "Bearer x", "Basic eDp5", "sched_x", "Bearer \x00", "Bearer \ud800", "Bearer ü"]
    )
    def test_what_is_none_opens_nothing(self, boss, header):
        answer = boss.get("/schedule", Authorization=header.encode("utf-8", "surrogatepass").decode("latin-1"))
        assert refused(answer) == (401, "invalid_token")
        assert 'error="invalid_token"' in answer["WWW-Authenticate"]

    def test_one_that_is_over_opens_nothing(self, writer):
        revoke_token(ApiToken.objects.get())
        assert refused(Caller().get("/schedule", **bearer(writer))) == (401, "invalid_token")

    def test_without_one_the_answer_asks_for_one(self):
        answer = Caller().get("/schedule")
        assert refused(answer) == (401, "unauthenticated")
        assert answer["WWW-Authenticate"] == 'Bearer realm="scheduler"'

    @pytest.mark.parametrize("name", ["token", "api_key"])
    def test_one_in_the_address_is_not_looked_at_AP9(self, writer, name):
        assert refused(Caller().get(f"/schedule?{name}={writer}")) == (401, "unauthenticated")
        assert refused(Caller().get("/schedule", Cookie=f"{name}={writer}")) == (401, "unauthenticated")
        assert refused(Caller().post(PAUSE, {name: writer})) == (401, "unauthenticated")

    def test_one_that_reads_changes_nothing(self, reader, job):
        answer = Caller().post(PAUSE, {}, **bearer(reader))
        assert refused(answer) == (403, "insufficient_scope")
        assert 'error="insufficient_scope"' in answer["WWW-Authenticate"]
        assert Job.objects.get(pk=job.pk).paused_at is None
        assert Caller().get("/schedule", **bearer(reader)).status_code == 200

    def test_its_user_must_be_allowed_to_do_it_too(self):
        user = User.objects.create_user("ann")
        user.user_permissions.set(Permission.objects.filter(codename="view_job"))
        _, secret = create_token("deploy", scope=Scope.WRITE, user=user)
        assert Caller().get("/schedule", **bearer(secret)).status_code == 200
        assert refused(Caller().post(PAUSE, {}, **bearer(secret))) == (403, "forbidden")

    def test_the_history_names_it(self, writer):
        ann = User.objects.create_superuser("ann")
        _, of_ann = create_token("laptop", scope=Scope.WRITE, user=ann)
        for secret in (writer, of_ann):
            Caller().post(PAUSE, {}, **bearer(secret))
            Caller().post("/schedule/job/resume", **bearer(secret))
        actors = list(JobEvent.objects.order_by("pk").values_list("actor", flat=True))
        assert actors == ["token deploy"] * 2 + ["ann (token laptop)"] * 2

    def test_its_last_use_is_written_after_the_answer(self, reader):
        Caller().get("/schedule", **bearer(reader))
        assert ApiToken.objects.get().last_used_at is not None


class TestSessions:
    """AP8: a test client that checks nothing would hide all of it."""

    @pytest.mark.parametrize("origin", [{}, {"Origin": "https://elsewhere.example"}])
    @pytest.mark.parametrize("has_session", [False, True])
    def test_a_token_needs_no_csrf_token(self, writer, origin, has_session):
        user = User.objects.create_superuser("ann") if has_session else None
        assert strict(user).post(PAUSE, {}, **bearer(writer), **origin).status_code == 200

    def test_a_session_beside_a_token_is_not_looked_at(self, boss, reader):
        assert refused(boss.post(PAUSE, {}, **bearer(reader))) == (403, "insufficient_scope")
        assert refused(boss.get("/schedule", **bearer("x"))) == (401, "invalid_token")

    def test_a_session_reads_without_a_csrf_token_and_writes_with_one(self):
        caller = strict(User.objects.create_superuser("ann"))
        assert caller.get("/schedule").status_code == 200
        assert refused(caller.post(PAUSE, {})) == (403, "csrf_failed")
        token = "a" * 32
        caller.client.cookies["csrftoken"] = token
        assert caller.post(PAUSE, {}, X_CSRFToken=token).status_code == 200
        foreign = {"Origin": "https://elsewhere.example", "X_CSRFToken": token}
        assert refused(caller.post(PAUSE, {}, **foreign)) == (403, "csrf_failed")
        assert JobEvent.objects.values_list("actor", flat=True).get() == "ann"

    def test_who_has_not_signed_in_is_asked_to_before_anything_else(self):
        assert refused(strict().post(PAUSE, {})) == (401, "unauthenticated")

    @pytest.mark.parametrize("order", [[django_auth, TokenAuth()], [TokenAuth(), django_auth], None])
    def test_whatever_the_api_of_a_host_asks_for(self, settings, writer, order):
        settings.ROOT_URLCONF = host_with(order)
        client = Client(enforce_csrf_checks=True)
        client.force_login(User.objects.create_superuser("ann"))
        answer = client.post(f"/own{PAUSE}", "{}", "application/json", headers=bearer(writer))
        assert answer.status_code == 200


def host_with(order):
    """A URLconf with a NinjaAPI of a host, which has authenticators of its own."""
    from types import ModuleType

    from django.urls import path
    from ninja import NinjaAPI

    from scheduler.api import router

    name = f"tests.integration.api.host_{len(sys.modules)}"
    api = NinjaAPI(urls_namespace=name, **({} if order is None else {"auth": order}))
    api.add_router("", router)
    sys.modules[name] = ModuleType(name)
    sys.modules[name].urlpatterns = [path("own/", api.urls)]
    return name


class TestSecrets:
    """AP9: whatever goes wrong, the token is told nowhere."""

    @pytest.fixture
    def reports(self, settings, caplog):
        """All that is written down about errors: logs, mails, and what a service for errors would be sent."""
        settings.ADMINS, settings.DEBUG = [("ops", "ops@example.com")], False
        caplog.set_level(logging.DEBUG)
        sent = []

        def receiver(request, **more):
            reporter = ExceptionReporter(request, *sys.exc_info())
            sent.extend([reporter.get_traceback_text(), reporter.get_traceback_html()])

        got_request_exception.connect(receiver)
        yield lambda: [*sent, *(f"{one.subject}{one.body}" for one in mail.outbox), caplog.text]
        got_request_exception.disconnect(receiver)

    @pytest.mark.filterwarnings(
        "ignore:Django .* will not have a default mailer", "ignore:Using .* pairs in the ADMINS"
    )
    @pytest.mark.parametrize("where", ["scheduler.api.routes.jobs.jobs_page", "scheduler.api.auth.holder_of"])
    @pytest.mark.parametrize("debug", [False, True])
    def test_a_defect_is_told_without_it(self, settings, monkeypatch, reports, writer, where, debug):
        settings.DEBUG = debug
        monkeypatch.setattr(where, lambda *given, **options: 1 / 0)
        caller = Caller()
        caller.client.raise_request_exception = False
        answer = caller.client.get(f"{ROOT}/schedule", headers=bearer(writer))
        assert answer.status_code == 500
        found = reports()
        assert any("ZeroDivisionError" in text for text in found)
        assert [text for text in (*found, answer.content.decode()) if writer in text] == []

    def test_neither_an_answer_nor_a_row_holds_it(self, writer, reports):
        answers = [
            Caller().get("/schedule", **bearer(writer)),
            Caller().get("/schedule/nobody", **bearer(writer)),
            Caller().post(PAUSE, {"until": "x"}, **bearer(writer)),
            Caller().post(PAUSE, {}, **bearer(writer)),
            Caller().post("/schedule/job/run", {}, **bearer(writer)),
            Caller().get("/schedule", Authorization=f"Token {writer}"),
        ]
        told = [json.dumps(answer.data) + str(answer.headers) for answer in answers]
        rows = [str(list(model.objects.values())) for model in (ApiToken, Job, JobEvent, RunLog)]
        assert [text for text in (*told, *rows, *reports()) if writer in text] == []

    def test_what_is_asked_of_the_database_holds_its_hash_only(self, writer, django_assert_num_queries):
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as queries:
            TokenAuth()(RequestFactory().get("/", headers=bearer(writer)))
        assert writer not in str(queries.captured_queries)
