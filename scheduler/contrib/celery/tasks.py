"""What Celery's autodiscovery finds: its generic task. The autodiscovery of the scheduler comes by here, too."""

from importlib.util import find_spec

if find_spec("celery") is not None:  # a system check says so where it is not
    from scheduler.contrib.celery import worker  # noqa: F401 - the task registers itself
