"""A test of the project, for `manage.py test` and pytest."""

from threading import Event

from django.test import TestCase


class LedgerTest(TestCase):
    def test_outlives_every_delay_of_the_start(self) -> None:
        from ledger.wsgi import application

        Event().wait(1.5)
        assert application is not None
