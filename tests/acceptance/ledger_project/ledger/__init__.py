"""A project whose tasks write a journal, so that the ledger can be checked from outside."""

import os

if os.environ.get("LEDGER_BROKER"):
    from .celery_app import app as celery_app  # noqa: F401 - so that processes that publish know it
