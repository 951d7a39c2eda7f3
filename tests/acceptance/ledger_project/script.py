"""A script of the project's own that starts the scheduler and then has nothing more to do."""

import os
from threading import Event

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
django.setup()

import scheduler  # noqa: E402

scheduler.start()
Event().wait()
