"""Use: one process at a time uses a channel, by a row with a lease."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from scheduler.engine.db.transactions import write_once
from scheduler.models import Instance, NoticeChannel

LEASE = timedelta(seconds=60)
"""For so long a process holds a channel that hangs and is no longer an instance; a message takes half as long."""


def take(using: str, name: str, holder: UUID, now: datetime, *, at_once: bool = False) -> NoticeChannel | None:
    """Take a channel if it is free and not to wait, unless `at_once`; None where it is not."""
    rows = NoticeChannel.objects.using(using).filter(name=name)
    lives = Exists(Instance.objects.using(using).filter(pk=OuterRef("holder")))
    free = Q(held_until=None) | Q(held_until__lte=now) | Q(held_until__gt=now + 2 * LEASE) | ~Q(lives)
    ripe = Q() if at_once else Q(next_at=None) | Q(next_at__lte=now)
    row = rows.first()
    if row is None:
        NoticeChannel.objects.using(using).bulk_create([NoticeChannel(name=name)], ignore_conflicts=True)
    elif not rows.filter(free, ripe).exists():
        return None
    held = {"holder": holder, "held_until": now + LEASE}
    if not write_once(using, lambda: rows.filter(free, ripe).update(**held)):
        return None
    return rows.filter(holder=holder).first()


def keep(using: str, row: NoticeChannel, now: datetime, **columns: object) -> bool:
    """Write what became of it, and hold it longer; False where another process has taken it."""
    rows = NoticeChannel.objects.using(using).filter(pk=row.pk, holder=row.holder)
    for name, value in columns.items():
        setattr(row, name, value)
    return write_once(using, lambda: rows.update(held_until=now + LEASE, **columns))


def give_back(using: str, row: NoticeChannel, **columns: object) -> None:
    """Let others have it."""
    rows = NoticeChannel.objects.using(using).filter(pk=row.pk, holder=row.holder)
    write_once(using, lambda: rows.update(holder=None, held_until=None, **columns))
