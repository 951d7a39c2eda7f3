"""A user's own command; it even builds the WSGI application, and lives longer than any delay."""

from threading import Event

from django.core.management.base import BaseCommand
from django.core.wsgi import get_wsgi_application


class Command(BaseCommand):
    """Import things."""

    def handle(self, *args: object, **options: object) -> None:
        get_wsgi_application()
        Event().wait(1.5)
