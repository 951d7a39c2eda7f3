"""Settings of the demo, each read from the environment or from `.env` beside manage.py, each with a default."""

import hmac
import warnings
from pathlib import Path
from typing import Any

import django
import environ

from scheduler.env import scheduler_settings

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=True)
# The default is known to everybody who reads this file: without DEBUG, SECRET_KEY must be set.
SECRET_KEY = env.str("SECRET_KEY", default="django-insecure-demo" if DEBUG else environ.Env.NOTSET)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "whitenoise.runserver_nostatic",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "ninja",
    "scheduler",
    "scheduler.contrib.sessions",
    "demo_project.alarms",
    "demo_project.assistant",
]
# `@task` of Django 6, and of its backport before that: what is enqueued runs in the processes that serve.
TASKS = {"default": {"BACKEND": "scheduler.contrib.tasks.SchedulerBackend"}}
if django.VERSION < (6,):
    INSTALLED_APPS.append("django_tasks")
# With a broker, one job runs in a worker of Celery.
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="")
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
if CELERY_BROKER_URL:
    INSTALLED_APPS.append("scheduler.contrib.celery")
MIDDLEWARE = [
    "demo_project.middleware.content_security_policy",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "demo_project.urls"
WSGI_APPLICATION = "demo_project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'demo.sqlite3'}"),
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # What every Django project on SQLite should have: readers do not wait for the writer, writers wait for each other.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
LANGUAGE_CODE = env.str("LANGUAGE_CODE", default="en")
USE_THOUSAND_SEPARATOR = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Serves the static files of all apps without `collectstatic`, also under gunicorn; then STATIC_ROOT need not exist.
WHITENOISE_USE_FINDERS = True
warnings.filterwarnings("ignore", message="No directory at", category=UserWarning)

# The assistant that the demo's jobs send prompts to is the demo itself; `manage.py demo` knows at which port.
ASSISTANT_URL = env.str("ASSISTANT_URL", default="http://127.0.0.1:8000/assistant")
ASSISTANT_TOKEN = env.str("ASSISTANT_TOKEN", default=hmac.new(SECRET_KEY.encode(), b"assistant", "sha256").hexdigest())
SCHEDULER_SESSION_TOKENS = {ASSISTANT_URL: ASSISTANT_TOKEN}
# Prompts go one after the other.
SCHEDULER_GROUPS = {"sessions": 1}

# Every SCHEDULER_* of the environment.
globals().update(scheduler_settings())

# Behind a proxy that speaks TLS: SECURE=True.
SECURE = env.bool("SECURE", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SECURE_HSTS_SECONDS = 3600 if SECURE else 0
# Whether all subdomains speak TLS is not for a demo to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {"scheduler": {"handlers": ["console"], "level": env.str("LOG_LEVEL", default="INFO")}},
}
