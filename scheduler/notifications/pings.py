"""Pings: a monitor elsewhere hears that a job begins, succeeds and fails, and raises the alarm when it hears nothing.

By the rows of jobs, so that pings are sent once however many processes run, and after a process died. Only how a job
stands now is told: what came and went while the monitor was away is no news.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from django.db.models import Max, Q

from scheduler.conf import conf
from scheduler.exceptions import ConfigurationError
from scheduler.models import FAILURES, Job, NoticeChannel
from scheduler.models.notice import LONGEST_ERROR, PING
from scheduler.notifications.channels.addresses import Address
from scheduler.notifications.channels.base import SendFailed
from scheduler.notifications.channels.configured import private_addresses
from scheduler.notifications.channels.post import request
from scheduler.notifications.use import give_back, take
from scheduler.safetext import shown, visible

START, SUCCESS, FAIL = "start", "success", "fail"
BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60, 120))


@dataclass(frozen=True)
class Ping:
    """The addresses that are asked for when a job begins, succeeds and fails; None: nothing is."""

    addresses: Mapping[str, Address | None]

    @property
    def label(self) -> str:
        """Where they lead, without the path."""
        found = next((address for address in self.addresses.values() if address), None)
        return found.label if found else ""


def configured_pings() -> dict[str, Ping]:
    """Return the pings of SCHEDULER_SECRET_PINGS by job; raises ConfigurationError, which quotes no address."""
    return {job: _ping(job, given) for job, given in conf.SECRET_PINGS.items()}


def _ping(job: str, given: Any) -> Ping:
    place = f"SCHEDULER_SECRET_PINGS[{shown(job)}]"
    if isinstance(given, str):
        success = Address(given, key=place)
        return Ping({SUCCESS: success, START: _below(success, START), FAIL: _below(success, FAIL)})
    if unknown := set(given) - {START, SUCCESS, FAIL}:
        raise ConfigurationError(f"{place} has {shown(min(map(str, unknown)))}; known: start, success, fail.")
    return Ping({kind: Address(url, key=place) if url else None for kind, url in given.items()})


def _below(address: Address, kind: str) -> Address:
    parts = urlsplit(address.url)
    return Address(urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{kind}")))


@dataclass(frozen=True, slots=True)
class _Stand:
    """How a job stands: when a living run began, when the last slot came to its end, and whether well."""

    began_at: datetime | None
    ended_at: datetime | None
    went_well: bool

    @property
    def seen(self) -> list[str]:
        """What a row keeps of it."""
        return [at.isoformat() if at else "" for at in (self.began_at, self.ended_at)]

    def news(self, seen: list[str]) -> Iterator[str]:
        """Yield what is to be told, in order, to one who was told `seen`."""
        began, ended = [*seen, "", ""][:2]
        if self.ended_at and self.ended_at.isoformat() != ended:
            yield SUCCESS if self.went_well else FAIL
        if self.began_at and self.began_at.isoformat() != began:
            yield START


def send_pings(
    using: str,
    holder: UUID,
    now: datetime,
    call: Callable[[str, Callable[[], None]], None],
    may_go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Send what is news of the jobs that have pings; returns how many were sent. Failures are tried again, last."""
    pings, sent = configured_pings(), 0
    if not pings:
        return 0
    names = dict(Job.objects.filter(name__in=list(pings)).values_list("pk", "name"))
    stands = _stands(list(names))
    rows = {row.name: row for row in NoticeChannel.objects.using(using).filter(name__startswith=PING)}
    failures = {key: rows[f"{PING}{key}"].failures for key in stands if f"{PING}{key}" in rows}
    for key, stand in sorted(stands.items(), key=lambda item: failures.get(item[0], 0)):
        name, row = f"{PING}{key}", rows.get(f"{PING}{key}")
        if not may_go_on():
            break
        if row is not None and not list(stand.news(row.recent)):
            continue
        held = take(using, name, holder, now)
        if held is not None:
            sent += _tell(using, held, pings[names[key]], stand, now, call, is_new=row is None)
    return sent


def _stands(keys: list[int]) -> dict[int, _Stand]:
    living = Max("runs__started_at", filter=Q(runs__due_at__isnull=False) & ~Q(runs__status="pending"))
    jobs = Job.objects.filter(pk__in=keys).annotate(began=living)
    columns = ("pk", "began", "last_outcome_at", "last_status", "last_errors")
    return {
        pk: _Stand(began, ended, status not in FAILURES and not errors)
        for pk, began, ended, status, errors in jobs.values_list(*columns)
    }


def _tell(
    using: str,
    row: NoticeChannel,
    ping: Ping,
    stand: _Stand,
    now: datetime,
    call: Callable[[str, Callable[[], None]], None],
    *,
    is_new: bool,
) -> int:
    """Send what is news to one monitor; one that was never told begins with what comes from now on."""
    told: dict[str, Any] = {"recent": stand.seen, "failures": 0, "next_at": None}
    sent = 0
    try:
        for kind in () if is_new else list(stand.news(row.recent)):
            address = ping.addresses.get(kind)
            if address is not None:
                call(row.name, lambda address=address: request("GET", address, None, {}))  # type: ignore[misc]
                sent += 1
                told |= {"used_at": now, "last_ok_at": now}
    except SendFailed as error:
        wait = BACKOFF[min(row.failures, len(BACKOFF) - 1)]
        text = visible(" ".join(str(error).split()))[:LONGEST_ERROR]
        told = {"last_error": text, "last_error_at": now, "failures": row.failures + 1, "next_at": now + wait}
    finally:
        give_back(using, row, **told)
    return sent


def wrong_pings() -> list[str]:
    """Return what is wrong with SCHEDULER_SECRET_PINGS, for the system check."""
    try:
        pings = configured_pings()
    except ConfigurationError as error:
        return [str(error)]
    return private_addresses(
        {f"the monitor of {job!r}": next(filter(None, ping.addresses.values()), None) for job, ping in pings.items()}
    )
