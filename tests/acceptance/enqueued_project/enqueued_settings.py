"""Settings of the processes that enqueue tasks and run them."""

import environ
from django import VERSION

env = environ.Env()
SECRET_KEY = "tests only"
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES = {"default": env.db_url("ENQUEUED_DATABASE")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    write_ahead = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
    options = {"timeout": 30, "transaction_mode": "IMMEDIATE", "init_command": write_ahead}
    DATABASES["default"]["OPTIONS"] = options
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["scheduler", *([] if VERSION >= (6,) else ["django_tasks"])]
SCHEDULER_AUTODISCOVER_MODULES = []
SCHEDULER_POLL_SECONDS = env.float("ENQUEUED_POLL_SECONDS", 0.2)
SCHEDULER_LISTEN = env.bool("ENQUEUED_LISTEN", True)
SCHEDULER_HEARTBEAT_SECONDS = 0.5
SCHEDULER_INSTANCE_TTL_SECONDS = 2
BACKEND = {"BACKEND": "scheduler.contrib.tasks.SchedulerBackend"}
TASKS = {
    "default": BACKEND,
    "again": {**BACKEND, "QUEUES": ["again"], "OPTIONS": {"on_lost": "retry"}},
}
