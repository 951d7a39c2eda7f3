"""The API as a client meets it: its URLs, and clients that may do everything, or look only."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

pytest.importorskip("ninja", reason="django-ninja (extra [api]) is not installed")

ROOT = "/api/scheduler"


class Caller:
    """A client that speaks JSON."""

    def __init__(self, user: User | None = None) -> None:
        self.client = Client()
        if user is not None:
            self.client.force_login(user)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the answer; `data` holds its JSON, and every error is a problem."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        text = body if isinstance(body, bytes | str) else "" if body is None else json.dumps(body)
        response: Any = self.client.generic(method, ROOT + path, text, "application/json", headers=sent)
        response.data = json.loads(response.content) if response.content else None
        if response.status_code >= 400:
            assert response["Content-Type"] == "application/problem+json"
            assert response.data["status"] == response.status_code
        return response

    def get(self, path: str, **headers: str) -> Any:
        return self.ask("GET", path, **headers)

    def put(self, path: str, body: Any, **headers: str) -> Any:
        return self.ask("PUT", path, body, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self.ask("PATCH", path, body, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.ask("POST", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.ask("DELETE", path, **headers)


@pytest.fixture(autouse=True)
def api_urls(settings):
    settings.ROOT_URLCONF = "tests.integration.api.urls"


@pytest.fixture
def boss(db) -> Caller:
    """A caller who may do everything."""
    return Caller(User.objects.create_superuser("boss", "boss@example.com", "x"))


@pytest.fixture
def user_with(db):
    """Return a function that makes a caller with some permissions of the app."""

    def make(*codenames: str) -> Caller:
        user = User.objects.create_user(f"user{User.objects.count()}")
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="scheduler", codename__in=codenames)
        )
        return Caller(user)

    return make
