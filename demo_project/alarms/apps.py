from django.apps import AppConfig


class AlarmsConfig(AppConfig):
    """Alarms of machines: what the demo's tasks work on."""

    name = "demo_project.alarms"
    label = "alarms"
    default_auto_field = "django.db.models.BigAutoField"
