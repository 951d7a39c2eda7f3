"""Notifier: the step of the thread that tells people. It is the only one that waits for their servers."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from scheduler.clock import Clock
from scheduler.conf import conf
from scheduler.engine.base import Engine
from scheduler.models import FAILURES
from scheduler.models.notice import LOOK
from scheduler.notifications.channels.base import Channel
from scheduler.notifications.channels.configured import configured_channels
from scheduler.notifications.limited import Limited, Stopped
from scheduler.notifications.look import Look, begin
from scheduler.notifications.message import Message
from scheduler.notifications.pings import send_pings
from scheduler.notifications.send import (
    give_up_old,
    in_turn,
    note_sent_late,
    prune_notices,
    send_waiting,
    wait_for_late,
    waiting_channels,
)
from scheduler.notifications.use import give_back, take

LOOK_EVERY = 10.0
SOONEST = 1.0
"""Seconds between two looks of a process, however often it hears of failures."""
TURN = 60.0
"""Seconds after which a step waits for no further server: it looks again first."""
WAIT_TO_JOIN = 1.0
NEW_AGAIN = timedelta(days=1)
"""Where nothing has looked for so long, notifications were turned off, and what happened since is not told."""


class Notifier:
    """Looks what is new, and sends what waits. What it needs to know stands in rows; it may die at any time."""

    def __init__(
        self,
        engine: Engine,
        may_claim: Callable[[], bool],
        clock: Clock,
        *,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine, self._may_claim, self._clock = engine, may_claim, clock
        self.wake: Callable[[], None] = lambda: None
        self.beat: Callable[[], None] = lambda: None
        """Gives a sign of life: a step waits for many servers, one after the other."""
        self._stopping = stopping
        self._limited = Limited(clock, stopping)
        self._heard = False
        self._looked = float("-inf")

    def settled(self, settled: Any) -> None:
        """Hear how runs ended: what failed, or has a monitor, is told at once. Only notes it."""
        if settled.broken or settled.recovered or any(_is_news(run) for run in settled.finished):
            self._heard = True
            self.wake()

    def step(self) -> float:
        """Look and send once; return the seconds until the next time."""
        if not self._may_claim():
            return WAIT_TO_JOIN
        channels, looked = configured_channels(), self._looked
        self._note_late(channels)
        wait = self._look(channels)
        told_all = self._send_all(channels)
        if conf.SECRET_PINGS and self._looked != looked:
            self._ping(self._turn())
        return wait if told_all else 0.0

    def _note_late(self, channels: list[Channel]) -> None:
        for channel in channels:
            if notices := self._limited.succeeded_late(channel.name):
                note_sent_late(self._engine.using, channel, notices, self._clock.now())
            elif self._limited.goes_on(channel.name):
                wait_for_late(self._engine.using, channel, self._clock.now())

    def _send_all(self, channels: list[Channel]) -> bool:
        """Send what waits; False where some of it waits for the next turn. What goes wrong keeps no other back."""
        using, may_go_on = self._engine.using, self._turn()
        problems: list[Exception] = []
        told_all = True
        for channel in in_turn(using, channels, waiting_channels(using) if channels else ()):
            if told_all := may_go_on():
                problems += self._send(channel)
        for problem in problems:
            raise problem
        return told_all

    def _turn(self) -> Callable[[], bool]:
        """Return what says whether another server may be waited for."""
        ends = self._clock.monotonic() + TURN
        return lambda: self._clock.monotonic() < ends and not self._stopping()

    def _look(self, channels: list[Channel]) -> float:
        since = self._clock.monotonic() - self._looked
        if since < (SOONEST if self._heard else LOOK_EVERY):
            return max(0.0, (SOONEST if self._heard else LOOK_EVERY) - since)
        heard, self._heard, self._looked = self._heard, False, self._clock.monotonic()
        using, now = self._engine.using, self._clock.now()
        row = take(using, LOOK, self._engine.instance_id, now, at_once=heard)
        if row is None:
            return LOOK_EVERY
        try:
            if row.used_at is None or now - row.used_at > NEW_AGAIN:
                begin(using)
            Look(using, now, channels).tell()
            give_up_old(using, now)
            prune_notices(using, now)
        finally:
            give_back(using, row, used_at=now, next_at=now + timedelta(seconds=LOOK_EVERY / 2))
        return LOOK_EVERY

    def _ping(self, may_go_on: Callable[[], bool]) -> None:
        with suppress(Stopped):
            send_pings(self._engine.using, self._engine.instance_id, self._clock.now(), self._call, may_go_on)

    def _send(self, channel: Channel) -> list[Exception]:
        """Send what waits for a channel; returns what went wrong here, and not there."""
        try:
            send_waiting(self._engine.using, channel, self._engine.instance_id, self._clock.now, self._deliver)
        except Stopped:
            pass
        except Exception as error:
            return [error]
        return []

    def _deliver(self, channel: Channel, message: Message) -> None:
        notices = [event.id for event in message.events]
        self._call(channel.name, lambda: channel.send(message), note=notices)

    def _call(self, name: str, function: Callable[[], None], note: object = None) -> None:
        self.beat()
        self._limited.call(name, function, note=note)


def _is_news(run: Any) -> bool:
    return run.status in FAILURES or run.errors > 0 or run.job.name in conf.SECRET_PINGS
