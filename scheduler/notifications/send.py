"""Send: what waits for a channel goes there in order, together where it is much, and again later where it fails."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from itertools import chain, takewhile
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q

from scheduler.conf import conf
from scheduler.engine.db.transactions import write_transaction
from scheduler.models import LONG_AGO, Notice, NoticeChannel, NoticeDelivery, Told
from scheduler.models.notice import LONGEST_ERROR
from scheduler.notifications.channels.base import Channel, MessageRefused, SendFailed
from scheduler.notifications.limited import NoAnswer
from scheduler.notifications.message import Event, Message
from scheduler.notifications.use import give_back, keep, take
from scheduler.safetext import counted, masked, visible
from scheduler.schedules.instants import instant_text

logger = logging.getLogger("scheduler")

MOST = 500
"""Notices of one message."""
MESSAGES = 20
TURN = timedelta(seconds=30)
"""Messages of one turn, and for how long another one is begun."""
BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60, 120, 300, 600))
AFTER_NO_ANSWER = 3
"""Where in `BACKOFF` what was not answered in time begins: it may have been sent, which is known a little later."""
REFUSED_OFTEN = 3
"""So often a notice is tried that the other side refuses, before it is given up."""
PUT_OFF = timedelta(minutes=5)
"""So long a notice that was refused alone lets the others go first."""
PATIENCE = timedelta(days=3)
"""A notice that waits for longer is given up: it is no news any more."""
RECOVERIES = (Told.RECOVERED, Told.SUCCEEDED_AGAIN)
LOGGED = (1, 10, 100)

Deliver = Callable[[Channel, Message], None]


def waiting_channels(using: str) -> set[str]:
    """Return the channels that something waits for. The bound lets the index of waiting deliveries answer."""
    waiting = NoticeDelivery.objects.using(using).filter(due_at__gt=LONG_AGO)
    return set(waiting.order_by().values_list("channel", flat=True).distinct())


def send_waiting(using: str, channel: Channel, holder: UUID, now: Callable[[], datetime], deliver: Deliver) -> int:
    """Send what waits for a channel; returns how many messages were sent. What fails stays, and waits longer."""
    row = take(using, channel.name, holder, now())
    if row is None:
        return 0
    sent, rest, ends = 0, {}, now() + TURN
    try:
        while sent < MESSAGES and now() < ends and (batch := _batch(using, channel, now())):
            if wait := _until_allowed(channel, row, now()):
                rest = {"next_at": wait}
                break
            if not _send(using, channel, row, batch, now, deliver):
                break
            sent += 1
    finally:
        give_back(using, row, **rest)
    return sent


def wait_for_late(using: str, channel: Channel, now: datetime) -> None:
    """Keep others from a channel while a message that is late still goes there from this process: they would send it
    again. Should this process die, they wait for a minute at most."""
    wait = BACKOFF[AFTER_NO_ANSWER]
    rows = NoticeChannel.objects.using(using).filter(name=channel.name, next_at__gt=now, next_at__lt=now + wait / 2)
    if rows.exists():
        with write_transaction(using):
            rows.update(next_at=now + wait)


def note_sent_late(using: str, channel: Channel, notices: Sequence[int], now: datetime) -> None:
    """Note that a message, which was not answered in time, was sent all the same."""
    rows = NoticeDelivery.objects.using(using).filter(channel=channel.name, notice__in=notices, due_at__gt=LONG_AGO)
    with write_transaction(using):
        rows.update(due_at=None, sent_at=now, attempts=F("attempts") + 1, error="")
        NoticeChannel.objects.using(using).filter(name=channel.name).update(failures=0, last_ok_at=now, next_at=None)


def in_turn(using: str, channels: Sequence[Channel], waiting: Collection[str]) -> list[Channel]:
    """Return the channels that something waits for: those that failed last come last, the longest unused first."""
    named = {channel.name: channel for channel in channels if channel.name in waiting}
    rows = {row.name: row for row in NoticeChannel.objects.using(using).filter(name__in=named)}

    def turn(name: str) -> tuple[bool, datetime]:
        row = rows.get(name)
        return (row.failures > 0, row.used_at or LONG_AGO) if row else (False, LONG_AGO)

    return [named[name] for name in sorted(named, key=turn)]


def give_up_old(using: str, now: datetime) -> int:
    """Give up what has waited for too long; returns how many deliveries."""
    old = NoticeDelivery.objects.using(using).filter(due_at__gt=LONG_AGO, due_at__lt=now - PATIENCE)
    if not old.exists():
        return 0
    with write_transaction(using):
        return old.update(due_at=None, failed_at=now)


def prune_notices(using: str, now: datetime) -> int:
    """Remove some of the notices that the run log would not keep either, and that nothing waits for."""
    days = conf.RETENTION_FAILED_DAYS
    if not days:
        return 0
    notices = Notice.objects.using(using).filter(at__lt=now - timedelta(days=days), open_for=None)
    notices = notices.exclude(closed_at__gt=now - PATIENCE)  # the note of the end, which may wait, looks it up
    waiting = NoticeDelivery.objects.using(using).filter(notice=OuterRef("pk"), due_at__gt=LONG_AGO)
    keys = list(notices.filter(~Exists(waiting)).order_by("at").values_list("pk", flat=True)[:MOST])
    if keys:
        with write_transaction(using):
            Notice.objects.using(using).filter(pk__in=keys).delete()
    return len(keys)


def _batch(using: str, channel: Channel, now: datetime) -> list[NoticeDelivery]:
    """Return what is sent next: everything that waits, or half of what was refused together, so that it narrows down.

    The clock of another host may be ahead: only what was refused waits for its instant, and what came later of the
    same job waits for that.
    """
    waiting = NoticeDelivery.objects.using(using).filter(channel=channel.name, due_at__gt=LONG_AGO)
    put_off = waiting.filter(attempts__gt=0, due_at__gt=now, notice__job_id__gt=0).values("notice__job_id")
    ready = waiting.filter(Q(attempts=0) | Q(due_at__lte=now)).exclude(notice__job_id__in=put_off)
    rows = list(ready.order_by("pk").select_related("notice")[: min(MOST, channel.most)])
    if untold := _ends_of_untold(using, channel, rows):
        with write_transaction(using):
            _rows(using, untold).update(due_at=None)
        rows = [row for row in rows if row not in untold]
    batch = list(takewhile(lambda row: row.attempts == rows[0].attempts, rows))
    return batch[: (len(batch) + 1) // 2] if batch and batch[0].attempts else batch


def _ends_of_untold(using: str, channel: Channel, rows: Sequence[NoticeDelivery]) -> list[NoticeDelivery]:
    """Return the notes of an end whose alerts were all given up here: no one knows what came to its end."""
    ends = {row: row.notice.alerts for row in rows if row.notice.kind in RECOVERIES}
    if not ends:
        return []
    alerts = NoticeDelivery.objects.using(using).filter(channel=channel.name, notice__in=[*chain(*ends.values())])
    failed_at = dict(alerts.values_list("notice", "failed_at"))
    found = {row: [failed_at[key] for key in keys if key in failed_at] for row, keys in ends.items()}
    return [row for row, instants in found.items() if instants and all(instants)]


def _until_allowed(channel: Channel, row: NoticeChannel, now: datetime) -> datetime | None:
    """Return until when the limit of the channel holds the next message back; None where it may go now."""
    lately = sorted(at for at in map(_instant, row.recent) if at is not None and now - channel.limit.per < at <= now)
    row.recent = [at.isoformat() for at in lately]
    return lately[-channel.limit.count] + channel.limit.per if channel.limit.is_used_up(len(lately)) else None


def _send(
    using: str,
    channel: Channel,
    row: NoticeChannel,
    batch: Sequence[NoticeDelivery],
    now: Callable[[], datetime],
    deliver: Deliver,
) -> bool:
    if not keep(using, row, now()):
        return False
    events = [event_of(one, channel.language) for one in batch]
    is_test = all(event.event == Told.TEST for event in events)
    message = Message(events=events, language=channel.language, is_test=is_test)
    try:
        deliver(channel, message)
    except SendFailed as error:
        _failed(using, channel, row, batch, error, now())
        return False
    deliveries = _rows(using, batch)
    with write_transaction(using):
        deliveries.update(due_at=None, sent_at=now(), attempts=F("attempts") + 1, error="")
    recent = _counted(channel, row, now())
    return keep(using, row, now(), used_at=now(), last_ok_at=now(), failures=0, next_at=None, recent=recent)


def _failed(
    using: str,
    channel: Channel,
    row: NoticeChannel,
    batch: Sequence[NoticeDelivery],
    error: SendFailed,
    now: datetime,
) -> None:
    text = safe(channel, error)
    failures = row.failures + 1
    recent = row.recent
    if isinstance(error, MessageRefused):
        _refused(using, batch, text, now)
        recent = _counted(channel, row, now)
    columns: dict[str, Any] = {
        "used_at": now,
        "last_error_at": now,
        "last_error": text,
        "failures": failures,
        "recent": recent,
    }
    number = max(row.failures, AFTER_NO_ANSWER) if isinstance(error, NoAnswer) else row.failures
    keep(using, row, now, next_at=now + BACKOFF[min(number, len(BACKOFF) - 1)], **columns)
    if failures in LOGGED:
        logger.warning(
            "%s could not be sent to %s (%d in a row), and must wait: %s",
            counted(len(batch), "notice"),
            channel.name,
            failures,
            text,
            extra={"action": "notices_not_sent", "channel": channel.name},
        )


def _refused(using: str, batch: Sequence[NoticeDelivery], text: str, now: datetime) -> None:
    """Note that a message was refused; alone, it is put off, and given up after some tries."""
    first = batch[0]
    columns: dict[str, Any] = {}
    if len(batch) == 1:
        was_put_off = first.due_at > first.notice.at
        gives_up = was_put_off and first.attempts + 1 >= REFUSED_OFTEN
        columns = {"due_at": None, "failed_at": now} if gives_up else {"due_at": now + PUT_OFF}
    with write_transaction(using):
        _rows(using, batch).update(attempts=F("attempts") + 1, error=text, **columns)


def _counted(channel: Channel, row: NoticeChannel, now: datetime) -> list[str]:
    """Return the messages that the limit of a channel counts, with one of now."""
    return [*row.recent, now.isoformat()][-channel.limit.count :]


def _rows(using: str, batch: Sequence[NoticeDelivery]) -> Any:
    return NoticeDelivery.objects.using(using).filter(pk__in=[one.pk for one in batch])


def safe(channel: Channel, error: Exception) -> str:
    """Return what an error says without secrets, in one line that a column holds."""
    return visible(" ".join(masked(channel.hides(str(error))).split()))[:LONGEST_ERROR]


def event_of(delivery: NoticeDelivery, language: str) -> Event:
    """Return a notice as a channel tells it. What is stored is read with distrust."""
    notice = delivery.notice
    texts = notice.data.get("texts")
    told: Any = texts.get(language) or next(iter(texts.values()), {}) if isinstance(texts, dict) else {}
    told = told if isinstance(told, dict) else {}
    changes, run = told.get("changes"), notice.data.get("run")
    return Event(
        id=notice.pk,
        event=str(notice.kind),
        severity=severity_of(notice.kind),
        job=visible(notice.name),
        at=instant_text(notice.at),
        title=_text(told, "title") or str(notice),
        times=_text(told, "times"),
        cause=_text(told, "cause"),
        error=_text(told, "error"),
        changes=[one for one in changes if isinstance(one, str)] if isinstance(changes, list) else [],
        run=run if isinstance(run, int) else None,
    )


def severity_of(kind: str) -> str:
    """Return alert, warning, recovery or test."""
    if kind in RECOVERIES:
        return "recovery"
    return {Told.SLOWER: "warning", Told.TEST: "test"}.get(Told(kind) if kind in Told.values else Told.FAILED, "alert")


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name, "")
    return visible(value) if isinstance(value, str) else ""


def _instant(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None
