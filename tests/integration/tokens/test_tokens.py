"""Tokens: who they let in, for how long, and to what. The secret is stored nowhere, the use written in passing."""

from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection, connections
from django.test.utils import CaptureQueriesContext

from scheduler.clock import SYSTEM_CLOCK, ManualClock
from scheduler.exceptions import InvalidOption
from scheduler.models import ApiToken, Scope
from scheduler.tokens import last_use
from scheduler.tokens.holder import holder_of
from scheduler.tokens.issue import create_token, digest_of, revoke_token
from scheduler.tokens.last_use import write_uses
from tests.factories import DAY, T0, at
from tests.integration.conftest import FILE_ALIAS

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """It is T0, and this process has seen no token."""
    manual = ManualClock(T0)
    monkeypatch.setattr(SYSTEM_CLOCK, "now", manual.now)
    monkeypatch.setattr("scheduler.engine.db.shared_time.CLOCK_QUERIES", {})
    monkeypatch.setattr(last_use, "_tried", {})
    monkeypatch.setattr(last_use, "_waiting", set())
    return manual


def test_a_secret_leads_to_its_token_and_the_row_to_no_secret():
    token, secret = create_token("deploy", actor="ann")
    assert holder_of(secret).token == token
    assert secret.startswith("sched_")
    assert len(secret) >= 40
    stored = ApiToken.objects.values().get()
    assert secret not in str(stored)
    assert secret.removeprefix("sched_") not in str(stored)
    assert (stored["digest"], stored["created_by"], stored["created_at"]) == (digest_of(secret), "ann", T0)
    assert secret not in f"{token!r}{holder_of(secret)!r}{vars(token)}"


@pytest.mark.parametrize("secret", ["", "sched_", "sched_" + "A" * 43, "x" * 100_000, "a\x00b", "\ud800", "ü", "'--"])
def test_what_is_no_secret_leads_nowhere(secret):
    create_token("deploy")
    assert holder_of(secret) is None


def test_the_letters_of_a_secret_have_their_case():
    _, secret = create_token("deploy")
    assert holder_of(secret.swapcase()) is None


def test_a_token_ends_when_it_is_revoked():
    token, secret = create_token("deploy")
    assert revoke_token(token)
    assert token.revoked_at == T0
    assert holder_of(secret) is None
    assert not revoke_token(token)


def test_a_token_ends_when_it_expires(clock):
    _, secret = create_token("deploy", expires_at=at(60))
    clock.set(at(59.9))
    assert holder_of(secret) is not None
    clock.set(at(60))
    assert holder_of(secret) is None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases keep instants only")
@pytest.mark.parametrize("column", ["expires_at", "revoked_at"])
def test_a_token_ends_when_an_instant_of_it_cannot_be_read(column):
    _, secret = create_token("deploy", expires_at=at(60))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduler_apitoken SET {column} = 'soon'")
    assert holder_of(secret) is None


VIEW, RUN = "scheduler.view_job", "scheduler.run_job"


@pytest.mark.parametrize(
    ("scope", "allowed"), [(Scope.READ, {VIEW}), (Scope.WRITE, {VIEW, RUN})], ids=["read", "write"]
)
def test_without_a_user_the_scope_decides_about_this_app_only(scope, allowed):
    _, secret = create_token("deploy", scope=scope)
    holder = holder_of(secret)
    assert {one for one in (VIEW, RUN, "auth.view_user", "auth.delete_user") if holder.has_perm(one)} == allowed
    assert holder.get_username() == "token deploy"


@pytest.mark.parametrize(
    ("scope", "codenames", "allowed"),
    [
        (Scope.WRITE, ["view_job"], {VIEW}),
        (Scope.WRITE, ["run_job"], {RUN}),
        (Scope.READ, ["view_job", "run_job"], {VIEW}),
        (Scope.READ, [], set()),
    ],
)
def test_with_a_user_both_must_allow_it(scope, codenames, allowed):
    user = User.objects.create_user("ann")
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    _, secret = create_token("deploy", scope=scope, user=user)
    holder = holder_of(secret)
    assert {one for one in (VIEW, RUN) if holder.has_perm(one)} == allowed
    assert holder.get_username() == "ann (token deploy)"


@pytest.mark.parametrize("off", [lambda user: user.delete(), lambda user: User.objects.update(is_active=False)])
def test_a_token_whose_user_is_gone_opens_nothing(off):
    user = User.objects.create_superuser("ann")
    _, secret = create_token("deploy", scope=Scope.WRITE, user=user)
    off(user)
    assert holder_of(secret) is None


def test_a_scope_that_is_none_reads():
    _, secret = create_token("deploy", scope=Scope.WRITE)
    ApiToken.objects.update(scope="admin")
    assert not holder_of(secret).has_perm(RUN)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "name is"),
        ({"name": "a\nb"}, "name is"),
        ({"name": "x" * 101}, "name has 101"),
        ({"scope": "admin"}, "scope is"),
        ({"expires_at": T0}, "in the future"),
        ({"expires_at": T0.replace(tzinfo=None)}, "no time zone"),
        ({"actor": None}, "actor is"),
    ],
)
def test_what_is_given_wrongly_is_told(given, words):
    with pytest.raises(InvalidOption, match=words):
        create_token(**{"name": "deploy"} | given)
    assert not ApiToken.objects.exists()


def used(token):
    token.refresh_from_db()
    return token.last_used_at


class TestLastUse:
    def test_a_call_is_answered_without_a_write(self):
        _, secret = create_token("deploy")
        with CaptureQueriesContext(connection) as queries:
            holder_of(secret)
        assert [query["sql"] for query in queries if not query["sql"].startswith("SELECT")] == []
        assert len(queries) == 1

    def test_it_is_written_after_the_answer_once_a_minute(self, clock):
        token, secret = create_token("deploy")
        seen = []
        for second in range(0, 150, 10):
            clock.set(at(second))
            holder_of(secret)
            with CaptureQueriesContext(connection) as queries:
                write_uses()
            seen.append(any("UPDATE" in query["sql"] for query in queries))
            assert used(token) <= at(second)
        assert (sum(seen), used(token)) == (3, at(120))

    def test_calls_side_by_side_whose_instants_are_out_of_order_write_it_once_AP10(self, clock):
        _, secret = create_token("deploy")
        for second in (2, 1, 0, 3, 1):
            clock.set(at(second))
            holder_of(secret)
            with CaptureQueriesContext(connection) as queries:
                write_uses()
            assert any("UPDATE" in query["sql"] for query in queries) == (second == 2)

    def test_another_process_that_wrote_it_counts_too(self, clock):
        token, secret = create_token("deploy")
        ApiToken.objects.update(last_used_at=T0)
        clock.set(at(30))
        holder_of(secret)
        write_uses()
        assert used(token) == T0

    def test_a_clock_that_was_set_back_keeps_nothing_from_being_written(self):
        token, secret = create_token("deploy")
        ApiToken.objects.update(last_used_at=T0 + DAY)
        holder_of(secret)
        write_uses()
        assert used(token) == T0 + DAY, "it does not go back"

    def test_a_write_that_fails_costs_nothing(self, monkeypatch, clock):
        token, secret = create_token("deploy")

        def refuse(*given):
            raise DatabaseError("read-only")

        with monkeypatch.context() as patched:
            patched.setattr(last_use, "_write", refuse)
            assert holder_of(secret) is not None
            write_uses()
        assert used(token) is None
        for second in (4.9, 5):
            clock.set(at(second))
            holder_of(secret)
            write_uses()
        assert used(token) == at(5)


@pytest.mark.usefixtures("file_database")
class TestLastUseOnSQLite:
    def test_nobody_waits_while_another_one_writes(self):
        """The first writes nothing; a later one will."""
        token, secret = create_token("deploy")
        other = connections.create_connection(FILE_ALIAS)
        other.connect()
        other.cursor().execute("BEGIN IMMEDIATE")
        try:
            began = SYSTEM_CLOCK.monotonic()
            assert holder_of(secret) is not None
            write_uses()
            assert SYSTEM_CLOCK.monotonic() - began < 1, "the connection waits for ten seconds elsewhere"
        finally:
            other.cursor().execute("ROLLBACK")
            other.close()
        assert used(token) is None
        with connections[FILE_ALIAS].cursor() as cursor:
            assert cursor.execute("PRAGMA busy_timeout").fetchone() == (10_000,)

    def test_many_threads_write_it_once(self):
        _, secret = create_token("deploy")
        together, found = Barrier(8), []

        def call():
            try:
                together.wait(10)
                for _ in range(5):
                    found.append(holder_of(secret))
                    write_uses()
            finally:
                connections.close_all()

        threads = [Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(found) == 40
        assert None not in found
        assert len(last_use._tried) == 1


def test_lengths_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(last_use, "MOST_TOKENS", 3)
    for number in range(10):
        last_use.note_use(ApiToken(pk=number), T0 + timedelta(seconds=number))
    assert len(last_use._tried) <= 3
