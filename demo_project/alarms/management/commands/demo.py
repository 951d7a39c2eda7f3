"""Prepare everything and serve the demo."""

import os
import secrets
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from demo_project.alarms.models import Event
from demo_project.alarms.past import DAYS, make_past

USERNAME = "admin"


class Command(BaseCommand):
    """Migrates, loads events and a past when there are none, makes an admin user, and becomes `runserver`."""

    help = "Migrate, load events and an example of a past, make an admin user, and serve. Ctrl-C stops it."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: 8000)")
        parser.add_argument("--no-past", action="store_true", help="begin with an empty run log")
        parser.add_argument("--no-serve", action="store_true", help="prepare everything, and stop there")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, stdout=self.stdout)
        self._load_events()
        if not options["no_past"]:
            self._make_past()
        self._make_admin()
        if not options["no_serve"]:
            self._serve(options["host"], options["port"])

    def _load_events(self) -> None:
        if Event.objects.exists():
            self.stdout.write(f"{Event.objects.count()} events are there already.")
        else:
            call_command("load_events", stdout=self.stdout)

    def _make_past(self) -> None:
        if made := make_past(timezone.now()):
            self.stdout.write(f"Made up {made} runs of the last {DAYS} days as an example; the note of each says so.")

    def _make_admin(self) -> None:
        users = get_user_model()._default_manager
        if users.filter(username=USERNAME).exists():
            self.stdout.write(
                f"The admin user {USERNAME!r} is there already; its password was printed when it was made."
                f" For a new one: {sys.argv[0]} changepassword {USERNAME}"
            )
            return
        password = secrets.token_urlsafe(12)
        users.create_superuser(username=USERNAME, email="", password=password)
        self.stdout.write(f"Admin user: {USERNAME}   password: {password}")

    def _serve(self, host: str, port: int) -> None:
        """Become the server: the scheduler starts in processes that serve, and this one only prepares."""
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        here = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        here = f"[{here}]" if ":" in here else here
        os.environ.setdefault("ASSISTANT_URL", f"http://{here}:{port}/assistant")
        self.stdout.write(f"Serving http://{address}/ - Ctrl-C stops it.")
        self.stdout.flush()
        command = [sys.executable, sys.argv[0], "runserver", "--noreload", address]
        os.execv(sys.executable, command)
