"""One process of a test: `python run.py ROLE ARGUMENTS`."""

import os
import sys
import threading
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "enqueued_settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

import scheduler  # noqa: E402


def database(statement, name):
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} DATABASE {name}")


def migrate():
    call_command("migrate", verbosity=0)


def work():
    """Run the scheduler until the end of the input."""
    scheduler.start()
    print("started", flush=True)
    sys.stdin.read()
    scheduler.stop()


def enqueue(start, end):
    from calls import note

    from scheduler.contrib.tasks import enqueue_many

    enqueue_many(note, [((number,), {}) for number in range(int(start), int(end))])


def singles(count):
    """Enqueue one task after the other, each when the one before has run."""
    from calls import late

    from scheduler.models import RunLog

    for number in range(1, int(count) + 1):
        late.enqueue(time.time())  # noqa: TID251
        while RunLog.objects.filter(status="succeeded").count() < number:
            time.sleep(0.01)  # noqa: TID251


def first(gate):
    """Enqueue the first task there is, when the gate opens for all processes at once."""
    from calls import note

    connection.ensure_connection()
    print("ready", flush=True)
    sys.stdin.readline()
    note.enqueue(gate)


def transactions(prefix, count):
    """Enqueue before what the task looks for is written; every third transaction is rolled back."""
    from calls import look_for

    from scheduler.models import Group

    for number in range(int(count)):
        name = f"{prefix}-{number}"
        with transaction.atomic():
            look_for.enqueue(name)
            Group.objects.create(name=name)
            transaction.set_rollback(number % 3 == 0)


def two():
    """Enqueue one task in two transactions that overlap; the second must not wait for the first."""
    from calls import note

    note.enqueue("known")
    enqueued, over = threading.Event(), threading.Event()

    def other():
        with transaction.atomic():
            note.enqueue("first")
            enqueued.set()
            over.wait(30)
        connection.close()

    thread = threading.Thread(target=other)
    thread.start()
    enqueued.wait(30)
    with connection.cursor() as cursor:
        limit = "SET lock_timeout = '2s'" if connection.vendor == "postgresql" else "SET innodb_lock_wait_timeout = 2"
        cursor.execute(limit)
    with transaction.atomic():
        note.enqueue("second")
    over.set()
    thread.join(30)
    print("did not wait")


def results():
    """Print how all tasks stand: job, attempt, status, error class."""
    from scheduler.models import RunLog

    for row in RunLog.objects.order_by("job__name", "scheduled_for", "attempt").select_related("job"):
        print(row.job.name.rpartition(".")[2], row.attempt, row.status)


def status(result_id, alias):
    from calls import hang

    result = hang.using(backend=alias, queue_name="again" if alias == "again" else "default").get_result(result_id)
    print(result.status, *[error.exception_class.__name__ for error in result.errors])


def hang(alias):
    import calls

    print(calls.hang.using(backend=alias, queue_name="again" if alias == "again" else "default").enqueue().id)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    globals()[sys.argv[1]](*sys.argv[2:])
