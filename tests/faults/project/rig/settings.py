"""Settings of the rig. FAULTS_FOLDER holds the journal and what the controller steers by."""

import faulthandler
import os
import signal
from pathlib import Path

import environ

from tests.faults.jobs import VISITORS_AT_ONCE, WORKERS

env = environ.Env()

FOLDER = Path(os.environ["FAULTS_FOLDER"])
os.environ.setdefault("FAULTS_RUNNER", str(os.getpid()))  # also in the children of the process executor
os.register_at_fork(after_in_child=lambda: os.environ.update(FAULTS_RUNNER=str(os.getpid())))  # workers of a server

faulthandler.register(signal.SIGUSR1)

SECRET_KEY = "tests only"
DEBUG = False
ALLOWED_HOSTS = ["*"]
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS = ["django.contrib.contenttypes", "scheduler", "rig"]
DATABASES = {"default": env.db("DATABASE_URL")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {"timeout": 5, "init_command": os.environ.get("FAULTS_PRAGMA", "")}
if "FAULTS_WAIT_TIMEOUT" in os.environ:  # MariaDB drops connections that are idle for longer
    DATABASES["default"]["OPTIONS"] = {"init_command": f"SET SESSION wait_timeout={os.environ['FAULTS_WAIT_TIMEOUT']}"}
if "FAULTS_KEEP_CONNECTIONS" in os.environ:
    DATABASES["default"] |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
if "FAULTS_SECOND_ALIAS" in os.environ:
    DATABASES["other"] = dict(DATABASES["default"])
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "rig.urls"
WSGI_APPLICATION = "rig.wsgi.application"

SCHEDULER_HEARTBEAT_SECONDS = env.float("FAULTS_HEARTBEAT", 0.5)
SCHEDULER_INSTANCE_TTL_SECONDS = env.float("FAULTS_TTL", 4.0)
SCHEDULER_POLL_SECONDS = env.float("FAULTS_POLL", 0.5)
SCHEDULER_SHUTDOWN_SECONDS = 5.0
SCHEDULER_MAX_WORKERS = env.int("FAULTS_WORKERS", WORKERS)
SCHEDULER_CHECK_INTERVAL = 0.5
SCHEDULER_MAX_CONCURRENT = VISITORS_AT_ONCE
SCHEDULER_MIN_INTERVAL = 0.5
SCHEDULER_MAX_LOG_CHARS = 4000
SCHEDULER_GROUPS = {"serial": 1}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(threadName)s %(levelname)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"scheduler": {"handlers": ["console"], "level": "WARNING"}},
}
