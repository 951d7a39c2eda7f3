"""Tokens in the admin: made there, shown once, revoked; and only where the project serves the API."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.urls import clear_url_caches

from scheduler.models import ApiToken, Scope
from scheduler.tokens.holder import holder_of
from scheduler.tokens.issue import create_token, revoke_token
from tests.integration.admin.conftest import client_of
from tests.integration.admin.pages import JOBS, page, text_of, told

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")
pytestmark = pytest.mark.django_db

NEW = {"name": "deploy", "scope": "write", "lasts": "90", "whose": "mine"}


@pytest.fixture
def served(settings):
    settings.ROOT_URLCONF = "tests.integration.api.urls"


@pytest.fixture
def ann():
    """A user who may manage tokens, and is no superuser."""
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__endswith="apitoken"))
    return user


def address(name="changelist"):
    return page(f"apitoken_{name}")


def made(client, **fields):
    """Make a token as a person does; returns the answer and the secret in it."""
    response = client.post(address("add"), NEW | fields)
    assert response.status_code == 200, response.status_code
    found = re.findall(r"sched_[\w-]{43}", response.content.decode())
    return response, found[0] if found else None


@pytest.mark.usefixtures("served")
class TestAToken:
    def test_is_shown_in_the_answer_that_made_it_and_nowhere_later(self, boss):
        response, secret = made(boss)
        token = holder_of(secret).token
        assert (token.name, token.scope, token.created_by) == ("deploy", Scope.WRITE, "boss")
        assert (token.expires_at - token.created_at).days in (89, 90)
        assert "no-store" in response["Cache-Control"]
        later = [boss.get(address()).content.decode(), boss.get("/admin/").content.decode()]
        kept = [*later, *Session.objects.values_list("session_data", flat=True), str(boss.cookies)]
        kept += [str(one.get_decoded()) for one in Session.objects.all()]
        assert [text for text in kept if secret in text or token.digest in text] == []

    def test_has_the_permissions_of_who_makes_it_or_all_where_a_superuser_says_so(self, boss):
        assert holder_of(made(boss)[1]).user.username == "boss"
        assert holder_of(made(boss, whose="none", lasts="")[1]).user is None

    def test_of_no_user_is_nothing_for_others(self, ann):
        response, secret = made(client_of(ann), whose="none")
        assert secret is None
        assert "none is not one of the available choices" in text_of(response)
        assert holder_of(made(client_of(ann))[1]).user == ann

    def test_with_a_wrong_name_is_not_made(self, boss):
        response, secret = made(boss, name="a\u200eb")
        assert secret is None
        assert "printable" in text_of(response)

    def test_is_revoked_from_the_list(self, boss):
        token, secret = create_token("deploy")
        response = boss.post(address(), {"action": "revoke", "_selected_action": [token.pk]})
        assert told(response) == ["1 token revoked."]
        assert holder_of(secret) is None
        assert "revoked" in text_of(boss.get(address()))

    def test_cannot_be_changed_and_only_be_deleted_once_it_opens_nothing(self, boss):
        token, secret = create_token("deploy")
        assert boss.post(page("apitoken_change", token.pk), NEW).status_code == 403
        assert boss.post(page("apitoken_delete", token.pk), {"post": "yes"}).status_code == 403
        everything = {"action": "delete_selected", "_selected_action": [token.pk], "post": "yes"}
        boss.post(address(), everything)
        assert holder_of(secret) is not None
        revoke_token(token)
        boss.post(address(), everything)
        assert not ApiToken.objects.exists()


@pytest.mark.usefixtures("served")
class TestTheList:
    def test_shows_others_their_own_only(self, boss, ann):
        create_token("theirs", user=User.objects.get(username="boss"))
        create_token("of none")
        create_token("own", user=ann)
        own = text_of(client_of(ann).get(address()))
        assert "own" in own
        assert "theirs" not in own
        assert "of none" not in own
        assert "theirs" in text_of(boss.get(address()))
        theirs = ApiToken.objects.get(name="theirs")
        client_of(ann).post(address(), {"action": "revoke", "_selected_action": [theirs.pk]})
        theirs.refresh_from_db()
        assert theirs.revoked_at is None

    def test_says_why_a_token_opens_nothing(self, boss):
        user = User.objects.create_user("gone")
        create_token("deploy", user=user)
        user.delete()
        assert "its user is gone" in text_of(boss.get(address()))

    def test_costs_the_same_however_many_there_are(self, boss, django_assert_max_num_queries):
        for number in range(30):
            create_token(f"t{number}", user=User.objects.create_user(f"u{number}"))
        with django_assert_max_num_queries(10):
            assert boss.get(address()).status_code == 200

    @pytest.mark.parametrize("lookup", ["digest__startswith=a", "user_key=1", "digest__regex=."])
    def test_is_no_way_to_spell_out_a_hash(self, boss, lookup):
        assert boss.get(f"{address()}?{lookup}").status_code == 400

    def test_is_for_those_with_the_permission(self, viewer):
        assert viewer.get(address()).status_code == 200
        assert viewer.get(address("add")).status_code == 403
        assert client_of(User.objects.create_user("staff", is_staff=True)).get(address()).status_code == 403

    def test_is_linked_with_the_docs_of_the_api(self, boss):
        for one in (JOBS, address()):
            from django.urls import reverse

            links = boss.get(reverse(one) if ":" in one else one).content.decode()
            assert 'href="/api/scheduler/docs"' in links
        assert f'href="{address()}"' in boss.get(page("job_changelist")).content.decode()
        assert address() in boss.get("/admin/").content.decode()


class TestWhereTheAPIIsNotServed:
    def test_nothing_is_said_of_tokens(self, boss):
        clear_url_caches()
        assert boss.get(address()).status_code == 403
        assert boss.get(address("add")).status_code == 403
        for one in ("/admin/", page("job_changelist")):
            text = boss.get(one).content.decode()
            assert "apitoken" not in text
            assert "/api/scheduler" not in text

    def test_nor_by_hosts_that_mount_the_router_is_anything_lost(self, boss, settings):
        settings.ROOT_URLCONF = "tests.integration.admin.urls_of_a_host"
        assert boss.get(address()).status_code == 200
        assert 'href="/host/docs"' in boss.get(page("job_changelist")).content.decode()
