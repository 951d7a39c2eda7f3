"""A command of the project's own that loads the application and works for a while."""

from threading import Event
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Outlives every delay of the start."""

    def handle(self, *args: Any, **options: Any) -> None:
        from ledger.wsgi import application

        Event().wait(1.5)
        self.stdout.write(str(application))
