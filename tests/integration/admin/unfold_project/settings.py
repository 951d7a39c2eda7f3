"""A project with django-unfold, after the recipe of docs/how-to/use-django-unfold.md."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["unfold", *INSTALLED_APPS, "tests.integration.admin.unfold_project"]
