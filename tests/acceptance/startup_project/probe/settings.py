"""Settings of the start-up project."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("STARTUP_FOLDER", "."))

SECRET_KEY = "tests only"
DEBUG = True
ALLOWED_HOSTS = ["*"]
USE_TZ = True
INSTALLED_APPS = [*filter(None, os.environ.get("STARTUP_APPS", "").split(",")), "django.contrib.staticfiles", "probe"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "startup.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "probe.urls"
WSGI_APPLICATION = "probe.wsgi.application"
ASGI_APPLICATION = "probe.asgi.application"
STATIC_URL = "static/"
STATIC_ROOT = FOLDER / "static"
SCHEDULER_ENABLED = os.environ.get("STARTUP_ENABLED", "1") == "1"
