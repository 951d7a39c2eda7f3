from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SessionsConfig(AppConfig):
    """Registers the task `send_prompt`, so that people can add jobs for it."""

    name = "scheduler.contrib.sessions"
    label = "scheduler_sessions"  # "sessions" is that of Django
    verbose_name = _("Prompt sessions")

    def ready(self) -> None:
        from scheduler.contrib.sessions import checks  # noqa: F401 - it registers itself
