"""The client of a Redis: connects when it is first asked, and waits for no answer longer than the caller can."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler.exceptions import SchedulerError
from scheduler.safetext import masked

SECONDS_TO_ANSWER = 2.0
"""A Redis that needs longer counts as away. `socket_timeout` and `socket_connect_timeout` in the URL change it."""


def client_of(url: str) -> Redis:
    """Return a client that answers in text and asks once: a second try would keep a worker or a request waiting."""
    return Redis.from_url(
        url,
        decode_responses=True,
        encoding_errors="surrogateescape",  # bytes that are no text go back as they came, and can be removed
        socket_timeout=SECONDS_TO_ANSWER,
        socket_connect_timeout=SECONDS_TO_ANSWER,
        retry=Retry(NoBackoff(), 0),
    )


@contextmanager
def asking(unavailable: type[SchedulerError]) -> Iterator[None]:
    """Ask a Redis in this block; raises `unavailable` where it does not answer, or refuses."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise unavailable(f"{type(error).__name__}: {masked(str(error))}") from error
