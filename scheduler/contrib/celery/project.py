"""The Celery app of the project, as Celery itself knows it."""

from typing import Any

from scheduler.exceptions import ConfigurationError

INSTALL = 'pip install "django-inprocess-scheduler[celery]"'
NO_APP = "Celery has no app in this process."
IMPORT = "Import the Celery app in the package of your settings, as Celery's documentation for Django says."
TASK = "scheduler.run_attempt"
"""The name of the task in every message: workers need know no job to know it."""


def celery_app() -> Any:
    """Return the app; raises ConfigurationError where Celery is missing, or has no app but its own fallback."""
    try:
        from celery import app
    except ImportError as error:
        raise ConfigurationError(f"Celery is not installed: {INSTALL}.") from error
    found = app.default_app._get_current_object()
    if found is None or (found.main == "default" and not found.fixups):
        raise ConfigurationError(f"{NO_APP} {IMPORT}")
    return found
