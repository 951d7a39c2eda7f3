"""A test of the project, run by pytest from outside: it imports the WSGI module and outlives any delay."""

from threading import Event


def test_the_application_is_importable() -> None:
    from probe.wsgi import application

    Event().wait(1.5)
    assert application is not None
