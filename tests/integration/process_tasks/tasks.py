"""Tasks that do what tasks should not."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

from django.conf import settings

import scheduler
from scheduler import OnActivity, register
from scheduler.context import Postpone

FOR_EVER = threading.Event()


@register("add")
def add(a, b):
    return a + b


@register("visit", schedule=OnActivity(60))
def visit(user_id, device_id, agent_id):
    return user_id == "welcome"


@register("fail")
def fail():
    raise ValueError("a\x00b \udce9 went wrong")


@register("asynchronous")
async def asynchronous(word):
    await asyncio.sleep(0.01)
    return word * 2


@register("use_context", takes_context=True)
def use_context(context):
    context.totals(copied=3, errors=1)
    context.progress(2, 4, "half")
    context.state["cursor"] = context.state["cursor"] + 1
    return [context.run_id, context.job, context.task, context.attempt, context.trigger, context.fencing_token,
            context.scheduled_for.isoformat(), context.last_run_at.isoformat()]  # fmt: skip


@register("go_deep", takes_context=True)
def go_deep(context, levels):
    for _ in range(levels):
        context.state = {"a": context.state}


@register("tell_fence", takes_context=True)
def tell_fence(context):
    return context.lock_fence


@register("exit")
def leave():
    sys.exit("x")


@register("postpone")
def postpone():
    raise Postpone(minutes=5)


@register("log_and_wait")
def log_and_wait(until):
    logging.getLogger("somewhere").info("a record")
    logging.getLogger("scheduler.task").info("logged")
    print("printed")
    while not Path(until).exists():
        FOR_EVER.wait(0.02)
    return "seen"


@register("hang", takes_context=True)
def hang(context):
    grandchild = subprocess.Popen(["sleep", "600"])
    context.totals(pid=os.getpid(), grandchild=grandchild.pid)
    FOR_EVER.wait()


@register("ignore_sigterm", takes_context=True)
def ignore_sigterm(context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang(context)


@register("obey", takes_context=True)
def obey(context):
    context.totals(begun=1)
    while True:
        context.check_stop()
        FOR_EVER.wait(0.02)


@register("crash")
def crash(how, note=None):
    logging.getLogger("scheduler.task").info("last words")
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))


@register("allocate")
def allocate():
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + 100_000_000,) * 2)
    return len(bytearray(1_000_000_000))


@register("print_much")
def print_much(lines):
    for number in range(lines):
        print(f"line {number} " + "x" * 80)


@register("leave_thread")
def leave_thread():
    threading.Thread(target=FOR_EVER.wait).start()
    return "done"


@register("leave_process", takes_context=True)
def leave_process(context):
    context.totals(grandchild=subprocess.Popen(["sleep", "600"]).pid)


@register("terminate_fork", takes_context=True)
def terminate_fork(context):
    helper = multiprocessing.get_context("fork").Process(target=FOR_EVER.wait)
    helper.start()
    helper.terminate()
    helper.join(2)
    return [helper.exitcode, context.stop_requested]


@register("who_starts")
def who_starts():
    from scheduler.runtime import current
    from scheduler.runtime.startup import arm

    answer = "started"
    try:
        scheduler.start()
    except scheduler.exceptions.ConfigurationError as refusal:
        answer = str(refusal)
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("scheduler")]
    return [arm.decision().how, current.current() is None, answer, threads]


@register("write_note")
def write_note(text):
    from tests.integration.process_tasks.models import Note

    Note.objects.create(text=text)
    return [str(note) for note in Note.objects.all()]


@register("environment")
def environment():
    return [str(Path.cwd()), sys.path, os.environ.get("PYTHONPATH"), os.environ.get("CANARY"), settings.SETTINGS_MODULE]


@register("hang_in_c")
def hang_in_c(file):
    """Holds the interpreter, so that no thread of this process can do anything."""
    grandchild = subprocess.Popen(["sleep", "600"])
    with contextlib.suppress(OSError):
        Path(file).write_text(f"{os.getpid()} {grandchild.pid}\n")
    re.match(r"(a+)+$", "a" * 64 + "b")


@register("hang_in_python")
def hang_in_python(file):
    grandchild = subprocess.Popen(["sleep", "600"])
    Path(file).write_text(f"{os.getpid()} {grandchild.pid}\n")
    FOR_EVER.wait()
