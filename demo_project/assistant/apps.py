from django.apps import AppConfig


class AssistantConfig(AppConfig):
    """A small session service, and the jobs that hand it prompts."""

    name = "demo_project.assistant"
    label = "assistant"
    default_auto_field = "django.db.models.BigAutoField"
