"""Tasks of one library, which the loader in conftest gives this module as `library`, under a name of its own."""

import enum

from scheduler.context import current_run

library = globals()["library"]
task = library.task
heard: list = []


class Colour(enum.StrEnum):
    RED = "red"


@task
def add(*args, **kwargs):
    return sum(args) + sum(kwargs.values())


@task
def echo(*args, **kwargs):
    return {"args": args, "kwargs": kwargs}


@task
def give(value):
    return RETURNED[value]


@task
def saves():
    current_run().state = {"cursor": 1}
    current_run().save()


@task
def note(word):
    heard.append(word)


@task
async def wait_for(value):
    return value


@task(takes_context=True)
def tell_context(context, fails=0):
    heard.append((context.task_result.id, context.attempt, context.task_result.status.value))
    if context.attempt <= fails:
        raise LookupError("not yet")


@task
def fail(kind):
    raise ERRORS[kind]()


@task
def leave(kind):
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt}[kind]("bye")


def with_notes():
    error = ValueError("first\nsecond line")
    error.add_note("a note")
    return error


def of_a_group():
    return ExceptionGroup("several", [ValueError("one"), TypeError("two")])


def of_a_local_class():
    class Own(Exception):
        pass

    return Own("mine")


ERRORS = {"notes": with_notes, "group": of_a_group, "local": of_a_local_class, "plain": lambda: ValueError("no")}
RETURNED = {
    "none": None,
    "text": "5",
    "tuple": (1, 2),
    "lambda": lambda: None,
    "large": "x" * 2000,
    "fits": {"x": "y" * 900},
}


def bare():
    return None


renamed = task(bare)


class Holder:
    @task
    def method():
        return None


nameless = task(lambda: None)
