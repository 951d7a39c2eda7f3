from django.apps import AppConfig
from django.conf import settings


class AlarmsConfig(AppConfig):
    """Alarms of machines: what the demo's tasks work on."""

    name = "demo_project.alarms"
    label = "alarms"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        if settings.CELERY_BROKER_URL:
            from demo_project import celery  # noqa: F401 - so that web processes know the broker
