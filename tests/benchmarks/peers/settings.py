"""A Django project with nothing but one peer, named by the environment."""

import os
from pathlib import Path

import environ

SECRET_KEY = "benchmarks only"
INSTALLED_APPS = ["django.contrib.contenttypes", *os.environ["BENCH_APPS"].split(",")]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(os.environ["BENCH_FOLDER"]) / "peer.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
if "DATABASE_URL" in os.environ:
    DATABASES["default"] = environ.Env().db("DATABASE_URL")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
Q_CLUSTER = {
    "name": "bench",
    "workers": 4,
    "orm": "default",
    "poll": 0.2,
    "timeout": 60,
    "retry": 120,
    "catch_up": False,
}
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
