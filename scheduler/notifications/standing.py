"""Standing: how each channel and ping of this project stands, for a page; and a test of one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from django.utils import translation
from django.utils.translation import gettext as _

from scheduler.engine.db.shared_time import shared_now
from scheduler.models import LONG_AGO, Job, Notice, NoticeChannel, NoticeDelivery, Told
from scheduler.models.notice import PING
from scheduler.notifications.channels.configured import configured_channels
from scheduler.notifications.pings import configured_pings
from scheduler.notifications.rows import write_notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A channel, or the ping of a job, and its last outcome. `label` has no secret."""

    name: str
    kind: str
    label: str
    row: NoticeChannel | None = None
    waiting: int = 0
    since: datetime | None = None

    @property
    def fails(self) -> bool:
        """Whether it failed when it was used last."""
        return self.row is not None and self.row.failures > 0

    @property
    def is_unused(self) -> bool:
        """Whether nothing was sent there yet."""
        return self.row is None or not (self.row.last_ok_at or self.row.last_error_at)


def standings() -> list[Standing]:
    """Return the channels and then the pings of the settings. Raises ConfigurationError where these are wrong."""
    channels, pings = configured_channels(), configured_pings()
    rows = {row.name: row for row in NoticeChannel.objects.all()}
    waiting: Any = NoticeDelivery.objects.filter(due_at__gt=LONG_AGO).order_by().values("channel")
    counts = {one["channel"]: one for one in waiting.annotate(count=Count("pk"), since=Min("due_at"))}
    found = [
        Standing(
            name=one.name,
            kind=one.kind,
            label=one.label,
            row=rows.get(one.name),
            waiting=counts.get(one.name, {}).get("count", 0),
            since=counts.get(one.name, {}).get("since"),
        )
        for one in channels
    ]
    keys = dict(Job.objects.filter(name__in=list(pings)).values_list("name", "pk"))
    return found + [
        Standing(name=job, kind="ping", label=ping.label, row=rows.get(f"{PING}{keys.get(job)}"))
        for job, ping in pings.items()
    ]


def send_test(using: str, name: str, actor: str) -> bool:
    """Have the running scheduler send a test to a channel; False where no channel has the name."""
    channel = next((one for one in configured_channels() if one.name == name), None)
    if channel is None:
        return False
    now = shared_now(using)
    with translation.override(channel.language):
        texts = {channel.language: {"title": _("This is a test that {actor} asked for.").format(actor=actor)}}
    notice = Notice(
        key=f"test:{now.timestamp():.6f}", kind=Told.TEST, name=name, at=now, data={"texts": texts, "channels": [name]}
    )
    return bool(write_notices(using, [(notice, [name])], now))
