"""The project the browser looks at: a file of its own as database, a strict policy on every page."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, MIDDLEWARE, TEMPLATES

DEBUG = True  # runserver serves the static files
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["BROWSER_TEST_DATABASE"],
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL;"},
    }
}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.browser.site"]
MIDDLEWARE = [
    "tests.browser.site.policy.content_security_policy",
    *MIDDLEWARE[:1],
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    *MIDDLEWARE[1:],
]
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("ar", "Arabic")]
ROOT_URLCONF = "tests.browser.site.urls"
TEMPLATES = TEMPLATES
SCHEDULER_POLL_SECONDS = 1.0
SCHEDULER_GROUPS = {"narrow": 1, "night": 2}
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
SCHEDULER_NOTIFY = [
    {"channel": "email", "to": ["ops@example.com"]},
    {"channel": "slack", "secret_url": "http://127.0.0.1:9/services/T000/B000/a-secret"},
]
SCHEDULER_SECRET_PINGS = {"often": "http://127.0.0.1:9/a-secret"}
SCHEDULER_NOTIFY_PRIVATE = True
