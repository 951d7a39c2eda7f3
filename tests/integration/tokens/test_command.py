"""scheduler_token: makes a token, shows it once, lists and revokes."""

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from scheduler.models import ApiToken, Scope
from scheduler.tokens.holder import holder_of

pytestmark = pytest.mark.django_db


def run(*arguments):
    out, err = StringIO(), StringIO()
    call_command("scheduler_token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def refusal(*arguments):
    with pytest.raises(CommandError) as raised:
        run(*arguments)
    return str(raised.value)


def test_the_secret_alone_goes_to_the_output_and_what_to_know_of_it_elsewhere():
    out, err = run("create", "deploy", "--write", "--expires", "90d")
    token = holder_of(out.strip()).token
    assert (token.name, token.scope, token.writes) == ("deploy", Scope.WRITE, True)
    assert (token.expires_at - token.created_at).days in (89, 90)
    assert token.created_by
    assert "not shown again" in err
    assert out.strip() not in err


def test_it_reads_for_ever_and_for_nobody_unless_told_otherwise():
    token = holder_of(run("create", "grafana")[0].strip()).token
    assert (token.scope, token.expires_at, token.user_key) == (Scope.READ, None, "")


def test_it_is_made_for_a_user():
    user = User.objects.create_user("ann")
    assert holder_of(run("create", "deploy", "--user", "ann")[0].strip()).user == user
    assert "no user 'bob'" in refusal("create", "deploy", "--user", "bob")


def test_programs_are_told_in_json():
    told = json.loads(run("create", "deploy", "--json")[0])
    assert holder_of(told.pop("token")).token.pk == told["number"]
    (listed,) = json.loads(run("list", "--json")[0])["tokens"]
    assert listed.keys() == told.keys()
    assert json.loads(run("revoke", "deploy", "--json")[0])["revoked_at"]


def test_a_list_shows_what_opens_and_no_secret():
    secret, other = run("create", "deploy")[0].strip(), run("create", "old")[0].strip()
    run("revoke", "old")
    out, _ = run("list")
    assert "deploy" in out
    assert "old" not in out
    out, _ = run("list", "--all")
    assert "revoked" in out
    for text in (secret, other, *ApiToken.objects.values_list("digest", flat=True)):
        assert text not in out
    run("revoke", "deploy")
    assert "no token" in run("list")[0]


def test_a_list_says_whose_user_is_gone():
    user = User.objects.create_user("ann")
    run("create", "deploy", "--user", "ann")
    assert "ann" in run("list")[0]
    user.delete()
    assert "(gone)" in run("list")[0]


def test_a_token_is_revoked_by_its_name_or_its_number():
    first, second = (json.loads(run("create", "deploy", "--json")[0]) for _ in range(2))
    assert "Several tokens" in refusal("revoke", "deploy")
    run("revoke", str(first["number"]))
    assert holder_of(first["token"]) is None
    assert "is revoked" in run("revoke", "deploy")[0]
    assert holder_of(second["token"]) is None
    assert "was revoked" in run("revoke", str(second["number"]))[0]
    assert "no token" in refusal("revoke", "deploy")


@pytest.mark.parametrize(
    "arguments",
    [(), ("make",), ("create",), ("create", "x", "--expires", "soon"), ("create", " "), ("revoke", "9" * 30)],
)
def test_what_is_asked_wrongly_is_told_in_a_line(arguments):
    assert "\n" not in refusal(*arguments)
