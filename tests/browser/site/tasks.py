"""A job for each test, so that the tests do not meet."""

import logging
import threading

from scheduler import Cron, DailyAt, Every, RunContext, register

HOSTILE = "<img src=x onerror=alert(1)></script><b>\"'\u202e" + "x" * 10_000

log = logging.getLogger("browser")
log.setLevel("INFO")


@register("quick")
def quick() -> str:
    """End at once."""
    return "done quickly"


@register("slow", takes_context=True)
def slow(context: RunContext) -> str:
    """Take twelve seconds and tell how far it is."""
    for part in range(1, 13):
        context.check_stop()
        log.info("part %d is done", part)
        context.progress(part, 12, f"part {part}")
        threading.Event().wait(1)
    context.totals(parts=12, errors=0)
    return "slow but sure"


@register("endless", takes_context=True)
def endless(context: RunContext) -> None:
    """Wait to be cancelled."""
    while True:
        context.check_stop()
        threading.Event().wait(0.2)


@register("hold_place", group="narrow", takes_context=True)
def hold_place(context: RunContext) -> None:
    """Have the only place of a group until it is cancelled."""
    while True:
        context.check_stop()
        threading.Event().wait(0.2)


@register("wait_place", group="narrow")
def wait_place() -> None:
    """Wait for a place in the group."""


@register("at_night", schedule=DailyAt(hour=2), group="night")
def at_night() -> None:
    """Be of a group that is paused."""


@register("to_pause", schedule=DailyAt(hour=3))
def to_pause() -> None:
    """Be paused."""


@register("to_break", schedule=Every(hours=24), breaker_threshold=1)
def to_break() -> None:
    """Be broken."""


@register("to_edit", schedule=Cron("0 9 * * 1-5", timezone="Europe/Berlin"))
def to_edit() -> None:
    """Be edited."""


@register("often", schedule=Every(seconds=2))
def often() -> str:
    """Run all the time."""
    log.info("here again")
    return "ok"


@register("failing", schedule=Every(seconds=3), backoff=[1], breaker_threshold=None)
def failing() -> None:
    """Fail with a hostile text."""
    log.warning(HOSTILE)
    raise ValueError(HOSTILE)


@register("careful", confirm="Sends a mail to everybody.")
def careful() -> None:
    """Be confirmed."""


@register("to_run_with", schedule=DailyAt(hour=5), kwargs={"days": 7})
def to_run_with(days: int = 7) -> str:
    """Be run with other arguments."""
    return f"{days} days"
