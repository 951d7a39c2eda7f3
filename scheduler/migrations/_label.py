"""The label of this app in the project: a subclass of its AppConfig may give it another one."""

from django.apps import apps


def label() -> str:
    """Return the label under which Django has these migrations."""
    app = apps.get_containing_app_config(__name__)
    return app.label if app else "scheduler"
