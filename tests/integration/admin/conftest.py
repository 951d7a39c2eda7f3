import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def boss(db):
    """A client of somebody who may do everything."""
    return client_of(User.objects.create_superuser("boss", "boss@example.com", "x"))


@pytest.fixture
def viewer(db):
    """A client of somebody who may look, and no more."""
    user = User.objects.create_user("viewer", is_staff=True)
    rights = Permission.objects.filter(content_type__app_label="scheduler", codename__startswith="view_")
    user.user_permissions.set(rights)
    return client_of(user)
