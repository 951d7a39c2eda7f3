"""Make, list and revoke the bearer tokens of the REST API."""

import getpass
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps

from scheduler.arguments import did_you_mean
from scheduler.engine.base import Engine
from scheduler.engine.db.shared_time import shared_now
from scheduler.exceptions import InvalidOption, InvalidSchedule
from scheduler.management.output import SchedulerCommand, moment, relative
from scheduler.models import ApiToken, Scope
from scheduler.schedules.duration import parse_duration
from scheduler.tokens.holder import users_of
from scheduler.tokens.issue import create_token, revoke_token


class Command(SchedulerCommand):
    """Exit code 0; 2: it was asked for wrongly."""

    help = "Make, list and revoke the bearer tokens of the REST API. A token is shown once; only its hash is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="make a token, and print it: nothing else goes to the output")
        create.add_argument("name", metavar="NAME", help="what calls with it, such as deploy")
        create.add_argument("--write", action="store_true", help="it may change and run jobs; without, only read")
        create.add_argument("--user", metavar="USERNAME", help="it may do no more than this user may")
        create.add_argument("--expires", type=_length, metavar="LENGTH", help="for how long it opens, such as 90d")
        listing = actions.add_parser("list", help="list the tokens that open; none of them is shown")
        listing.add_argument("--all", action="store_true", help="those that are revoked or expired, too")
        revoke = actions.add_parser("revoke", help="have a token open nothing any more")
        revoke.add_argument("token", metavar="TOKEN", help="its name or its number, as `list` shows them")
        for one in (create, listing, revoke):
            super().add_arguments(one)

    def run(self, **options: Any) -> None:
        {"create": self._create, "list": self._list, "revoke": self._revoke}[options["action"]](**options)

    def _create(self, **options: Any) -> None:
        lasts = options["expires"]
        token, secret = create_token(
            options["name"],
            scope=Scope.WRITE if options["write"] else Scope.READ,
            user=_user_named(options["user"]) if options["user"] else None,
            expires_at=None if lasts is None else shared_now(Engine().using) + lasts,
            actor=_operator(),
        )
        if options["json"]:
            self.print_json({**_data(token, _names([token])), "token": secret})
            return
        self.stdout.write(secret)
        until = f"until {moment(token.expires_at)}" if token.expires_at else "until it is revoked"
        self.stderr.write(f"Token {token.pk} ({token.get_scope_display()}), {until}. Keep it: it is not shown again.")

    def _list(self, **options: Any) -> None:
        now = shared_now(Engine().using)
        tokens = list(ApiToken.objects.all() if options["all"] else ApiToken.objects.live(now))
        names = _names(tokens)
        if options["json"]:
            self.print_json({"tokens": [_data(token, names) for token in tokens]})
            return
        rows = [
            (
                token.pk,
                token.name,
                token.get_scope_display(),
                _state(token, now),
                names.get(token.user_key, ""),
                "never" if token.last_used_at is None else relative(token.last_used_at, now),
                token.created_by,
            )
            for token in tokens
        ]
        heads = ["NUMBER", "NAME", "SCOPE", "STATE", "USER", "LAST USED", "CREATED BY"]
        self.print_table(heads, rows, empty="There is no token that opens." if not options["all"] else "No tokens.")

    def _revoke(self, **options: Any) -> None:
        token = _token_named(options["token"])
        is_new = revoke_token(token)
        if options["json"]:
            self.print_json(_data(token, _names([token])))
            return
        self.stdout.write(f"Token {token.pk}, {token.name}, {'is' if is_new else 'was'} revoked.")


def _length(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except InvalidSchedule as error:
        raise ArgumentTypeError(str(error)) from error


def _user_named(username: str) -> Any:
    if not apps.is_installed("django.contrib.auth"):
        raise InvalidOption("--user needs django.contrib.auth in INSTALLED_APPS; leave it out.")
    from django.contrib.auth import get_user_model

    users: Any = get_user_model()._default_manager
    user = users.filter(**{users.model.USERNAME_FIELD: username}).first()
    if user is None:
        raise InvalidOption(f"There is no user {username!r}.")
    return user


def _token_named(text: str) -> ApiToken:
    """Return the token of this number, or the only one of this name that is not revoked."""
    tokens = ApiToken.objects.filter(revoked_at__isnull=True)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    if number is not None and (found := ApiToken.objects.filter(pk=number).first()) is not None:
        return found
    named = list(tokens.filter(name=text)[:10])
    if len(named) == 1:
        return named[0]
    if named:
        numbers = ", ".join(str(token.pk) for token in named)
        raise InvalidOption(f"Several tokens are named {text!r}; name one by its number: {numbers}.")
    raise InvalidOption(f"There is no token {text!r}.{did_you_mean(text, tokens.values_list('name', flat=True))}")


def _names(tokens: list[ApiToken]) -> dict[str, str]:
    """Return the names of the users of tokens, by their keys; of users who are gone what is known of them."""
    users = users_of(tokens)
    return {
        token.user_key: users[token.user_key].get_username() if token.user_key in users else f"{token.user_key} (gone)"
        for token in tokens
        if token.user_key
    }


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is None:
        return "open"
    return f"expires {relative(token.expires_at, now)}" if token.is_live(now) else "expired"


def _data(token: ApiToken, names: dict[str, str]) -> dict[str, Any]:
    columns = ("name", "scope", "created_at", "created_by", "expires_at", "revoked_at", "last_used_at")
    told = {name: getattr(token, name) for name in columns}
    return {"number": token.pk, **told, "user": names.get(token.user_key)}


def _operator() -> str:
    """Return who runs the command, as far as the system knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
