"""Tasks that write what they do into a journal, a line each, which a killed process cannot take back."""

import os
import threading
import time

try:
    from django.tasks import task
except ImportError:
    from django_tasks import task


def journal(*words):
    line = " ".join(map(str, (os.getpid(), *words))) + "\n"
    file = os.open(os.environ["ENQUEUED_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


@task
def note(number):
    journal("note", number)


@task
def late(enqueued_at):
    journal("late", time.time() - enqueued_at)  # noqa: TID251


@task
def look_for(name):
    from scheduler.models import Group

    journal("looked", name, Group.objects.filter(name=name).exists())


@task(takes_context=True)
def hang(context):
    journal("hang", context.attempt)
    if context.attempt == 1:
        threading.Event().wait(60)
