"""Look: compares how jobs stand with what people were told, and writes down what is new and what is over."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scheduler.engine.views.readable import policy_if_readable
from scheduler.models import Job, JobWatch, Notice, Told
from scheduler.notifications.channels.base import Channel
from scheduler.notifications.ended import Known, how_it_ended
from scheduler.notifications.found import FAILING, SEEN, Found, outages, told_once
from scheduler.notifications.rows import Addressed, close, note_seen, write_notices
from scheduler.notifications.words import texts_of, texts_of_end

CALM = timedelta(minutes=10)
ALERTS_WHILE_CALM = 2
"""So many alerts of one topic begin within `CALM`: of what comes and goes faster, only how it stands then is told."""
FULLY = 20
"""Of so many notices of a look the cause is looked up."""
BASELINE_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Look:
    """One look at an instant."""

    using: str
    now: datetime
    channels: Sequence[Channel]

    def tell(self) -> int:
        """Write what is to be told; returns how many notices."""
        open_notices = {one.open_for: one for one in Notice.objects.using(self.using).filter(open_for__isnull=False)}
        found = outages(self.now)
        new = [one for topic, one in found.items() if topic not in open_notices]
        alerts = [one for one in new if not self._is_covered(one, open_notices)]
        once = told_once()
        fresh = [*self._addressed(self._calmed(alerts)), *self._addressed(once)]
        written = write_notices(self.using, fresh, self.now)
        for one in once:
            note_seen(self.using, one.job, {SEEN[one.kind]: getattr(one.job, SEEN[one.kind])})
        return written + sum(self._ended(open_notices, found)) + self._grown_worse(open_notices, found)

    def _is_covered(self, one: Found, open_notices: dict[Any, Notice]) -> bool:
        """Whether an outage of the job that was told already says this, too."""
        late = one.kind in (Told.NOT_FRESH, Told.DEADLINE_MISSED)
        return late and f"{FAILING}:{one.job.pk}" in open_notices

    def _calmed(self, alerts: list[Found]) -> list[Found]:
        if not alerts:
            return []
        keys = Notice.objects.using(self.using).filter(at__gt=self.now - CALM).values_list("key", flat=True)
        lately = Counter(key.partition("@")[0] for key in keys)
        return [one for one in alerts if lately[one.topic] < ALERTS_WHILE_CALM]

    def _addressed(self, found: Sequence[Found]) -> list[Addressed]:
        """Return the notices that some channel takes."""
        taken = [(one, self._channels_of(one)) for one in found]
        return [
            (self._notice(one, channels, fully=number < FULLY), [channel.name for channel in channels])
            for number, (one, channels) in enumerate((one, channels) for one, channels in taken if channels)
        ]

    def _channels_of(self, one: Found) -> list[Channel]:
        policy = policy_if_readable(one.job)
        if policy and policy.notify is not None and one.kind not in policy.notify:
            return []
        return [channel for channel in self.channels if channel.takes(one.kind, one.job.name, one.job.in_group)]

    def _notice(self, one: Found, channels: Sequence[Channel], *, fully: bool, after: Notice | None = None) -> Notice:
        texts = texts_of(one, {channel.language for channel in channels}, self.now, fully=fully)
        told = channels_told(after) if after else ()
        names = list(dict.fromkeys([*told, *(channel.name for channel in channels)]))
        data = {
            "texts": texts, "channels": names, "after": (one.ends_after or self.now).isoformat(), "count": one.count,
            "run": one.run.pk if one.run else None, "of": [after.pk] if after else [],
        }  # fmt: skip
        key = one.key or f"{one.topic}@{one.kind.value}:{self.now.timestamp():.0f}"
        return Notice(
            key=key, open_for=one.topic or None, kind=one.kind, job_id=one.job.pk, name=one.job.name, at=self.now,
            data=data,
        )  # fmt: skip

    def _grown_worse(self, open_notices: dict[Any, Notice], found: dict[str, Found]) -> int:
        """Tell of a job that broke after it was told that it fails: it is the same outage."""
        count = 0
        for topic, one in found.items():
            notice = open_notices.get(topic)
            if notice is None or (notice.kind, one.kind) != (Told.FAILED, Told.BROKEN):
                continue
            if channels := self._channels_of(one):
                following = self._notice(one, channels, fully=count < FULLY, after=notice)
                count += close(self.using, notice, self.now, (following, [channel.name for channel in channels]))
        return count

    def _ended(self, open_notices: dict[Any, Notice], found: dict[str, Found]) -> Iterator[int]:
        over = [notice for topic, notice in open_notices.items() if topic not in found]
        jobs = Job.objects.using(self.using).in_bulk({notice.job_id for notice in over}) if over else {}
        known = Known.of(over)
        for notice in over:
            job = jobs.get(notice.job_id)
            end = how_it_ended(notice, job, known)
            if end is not None:
                yield int(close(self.using, notice, self.now, self._end(notice, job, *end)))

    def _end(self, notice: Notice, job: Job | None, kind: Told | None, more: dict[str, Any]) -> Addressed | None:
        told = set(channels_told(notice))
        channels = [channel for channel in self.channels if channel.name in told]
        if kind is None or not channels:
            return None
        name = job.shown_name if job else notice.name
        texts = texts_of_end(kind, name, job, self.now, {channel.language for channel in channels}, more=more)
        data = {"texts": texts, "channels": [channel.name for channel in channels], "of": [*notice.alerts, notice.pk]}
        key = f"end:{notice.pk}"
        end = Notice(key=key, kind=kind, job_id=notice.job_id, name=name, at=self.now, data=data)
        return end, [channel.name for channel in channels]


def channels_told(notice: Notice) -> list[str]:
    """Return the channels that were told of an outage."""
    names = notice.data.get("channels")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def begin(using: str) -> None:
    """Take what jobs missed and lost so far as told: notifications were just turned on."""
    rows = Job.objects.using(using).filter(misses__gt=0) | Job.objects.using(using).filter(losses__gt=0)
    watched = JobWatch.objects.using(using)
    values = list(rows.values_list("pk", "misses", "losses"))
    for at in range(0, len(values), BASELINE_AT_ONCE):
        part = values[at : at + BASELINE_AT_ONCE]
        known = set(watched.filter(pk__in=[pk for pk, _, _ in part]).values_list("pk", flat=True))
        new = [JobWatch(pk=pk, misses=misses, losses=losses) for pk, misses, losses in part if pk not in known]
        watched.bulk_create(new, ignore_conflicts=True)
        for pk, misses, losses in part:
            if pk in known:
                watched.filter(pk=pk).update(misses=misses, losses=losses)
