"""Settings of the children; the parent hands the name of its database over."""

SECRET_KEY = "tests only"
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "the parent says which one"}}
INSTALLED_APPS = ["scheduler", "tests.integration.process_tasks"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
