"""Hand-over to Django Tasks: enqueues the generic task with the id of an attempt, and nothing else."""

from scheduler.contrib.django_tasks import worker
from scheduler.contrib.django_tasks.backends import DEFAULT, backend_named
from scheduler.executors.base import options_of
from scheduler.models import RunLog


class ByTasks:
    """Enqueues ids in a backend of TASKS. See `Handover`."""

    def send(self, run: RunLog) -> None:
        """Enqueue the id of an attempt; raises ConfigurationError for a wrong backend, and what the backend raises."""
        options = options_of(run)
        backend = backend_named(options.get("backend", DEFAULT))
        priority = options.get("priority", 0) if backend.supports_priority else 0
        worker.task_for(backend, queue=options.get("queue"), priority=priority).enqueue(run.pk)
