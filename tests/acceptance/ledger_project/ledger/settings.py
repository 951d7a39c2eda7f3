"""Settings of the ledger project. LEDGER_FOLDER holds the database, the journal, and what the test steers by."""

import json
import os
from pathlib import Path

import environ

from . import faketime, tracing

FOLDER = Path(os.environ["LEDGER_FOLDER"])

SECRET_KEY = "tests only"
DEBUG = True
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.staticfiles"]
INSTALLED_APPS += ["scheduler", "ledger"]
if os.environ.get("LEDGER_BROKER"):
    INSTALLED_APPS += ["scheduler.contrib.celery"]
if os.environ.get("LEDGER_TASKS_APPS"):
    INSTALLED_APPS += ["scheduler.contrib.django_tasks", *os.environ["LEDGER_TASKS_APPS"].split()]
    TASKS = json.loads(os.environ["LEDGER_TASKS_BACKENDS"])
    RQ_QUEUES = json.loads(os.environ.get("LEDGER_RQ_QUEUES", "{}"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "ledger.sqlite3",
        "OPTIONS": {"timeout": 20, "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"},
        "TEST": {"NAME": FOLDER / "test.sqlite3"},
    }
}
if "LEDGER_DATABASE_URL" in os.environ:
    DATABASES = {"default": environ.Env().db("LEDGER_DATABASE_URL")}
    DATABASES["default"]["OPTIONS"] = json.loads(os.environ.get("LEDGER_DATABASE_OPTIONS", "{}"))
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "ledger.urls"
WSGI_APPLICATION = "ledger.wsgi.application"
ASGI_APPLICATION = "ledger.asgi.application"
STATIC_URL = "static/"
STATIC_ROOT = FOLDER / "static"

SCHEDULER_ENABLED = os.environ.get("LEDGER_ENABLED", "1") == "1"
SCHEDULER_POLL_SECONDS = float(os.environ.get("LEDGER_POLL", "1"))
SCHEDULER_HEARTBEAT_SECONDS = float(os.environ.get("LEDGER_HEARTBEAT", "2"))
SCHEDULER_INSTANCE_TTL_SECONDS = float(os.environ.get("LEDGER_TTL", "60"))
SCHEDULER_LOCK_URL = os.environ.get("LEDGER_LOCK_URL", "")
SCHEDULER_DEFAULT_GROUP = os.environ.get("LEDGER_DEFAULT_GROUP", "")
SCHEDULER_GROUPS = {"serial": 1}
SCHEDULER_MIN_INTERVAL = 0.1
SCHEDULER_NOTIFY = json.loads(os.environ.get("LEDGER_NOTIFY", "[]"))
SCHEDULER_NOTIFY_PRIVATE = True
EMAIL_PORT = int(os.environ.get("LEDGER_SMTP", "25"))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(process)d %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"scheduler": {"handlers": ["console"], "level": "INFO"}},
}

faketime.install(FOLDER / "clock_offset")
tracing.install(FOLDER / "trace.jsonl")
