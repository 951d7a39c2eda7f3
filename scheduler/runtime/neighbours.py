"""Neighbours: other projects on the Redis of this one. Keys name the job, so equal names would block each other.

Each project leaves a mark there (`scheduler:projects`, by when it was seen last), and looks whose marks there are. Keys
stay as they are documented, for workers elsewhere: a prefix made from the project would be another one in each of them.
"""

import logging
from contextlib import suppress

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac

from scheduler.conf import conf

logger = logging.getLogger("scheduler")

MARKS = "scheduler:projects"
FORGOTTEN_AFTER = 300
"""Seconds after which a project that was not seen is gone; each looks once a minute."""
SETTINGS = ("LOCK_URL", "ACTIVITY_STORE")


class Neighbours:
    """Who else uses the Redis of SCHEDULER_LOCK_URL and SCHEDULER_ACTIVITY_STORE."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        """Other projects by the name of the setting, each as its ROOT_URLCONF and a short digest."""

    def look(self) -> None:
        """Leave our mark and see those of others; a Redis that does not answer is for others to tell of."""
        for name in SETTINGS:
            url = getattr(conf, name)
            if not url:
                continue
            others = _others(url)
            if others is not None and others != self.found.get(f"SCHEDULER_{name}", []):
                self.found[f"SCHEDULER_{name}"] = others
                _say(f"SCHEDULER_{name}", others)


def _others(url: str) -> list[str] | None:
    from redis import RedisError  # most projects have none

    from scheduler.redis_client import client_of

    ours = [_digest(key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)] if _has_key() else [""]
    try:
        with client_of(url) as client:
            now, _ = client.time()
            with client.pipeline() as pipe:
                pipe.zadd(MARKS, {f"{getattr(settings, 'ROOT_URLCONF', '')} {ours[0]}": now})
                pipe.zremrangebyscore(MARKS, "-inf", now - FORGOTTEN_AFTER)
                pipe.zrange(MARKS, 0, -1)
                marks = pipe.execute()[-1]
    except (RedisError, OSError):
        return None
    return sorted(mark for mark in marks if mark.rpartition(" ")[2] not in ours)


def _has_key() -> bool:
    with suppress(ImproperlyConfigured):
        return bool(settings.SECRET_KEY)
    return False


def _digest(key: str) -> str:
    """Return what all processes of a project share and no other project has."""
    return salted_hmac("scheduler.runtime.neighbours", "project", secret=key, algorithm="sha256").hexdigest()[:8]


def _say(setting: str, others: list[str]) -> None:
    if others:
        logger.warning(
            "The Redis of %s is shared with another project (%s): jobs of equal names block each other; give each"
            " project a database number of its own, for example redis://host/1",
            setting,
            ", ".join(others),
            extra={"action": "redis_shared"},
        )
