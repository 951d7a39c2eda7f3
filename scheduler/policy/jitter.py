"""Jitter: a stable delay of the start, so that jobs of one schedule do not all start in the same instant."""

from datetime import datetime, timedelta
from hashlib import blake2b

_SCALE = 1 << 64


def delay(name: str, slot: datetime, jitter: timedelta, next_slot: datetime | None) -> timedelta:
    """Return a delay in `[0, jitter]`, the same for the same job and slot everywhere, capped below the next slot."""
    if not jitter:
        return timedelta(0)
    seed = f"{name}\0{slot.isoformat()}".encode()
    share = int.from_bytes(blake2b(seed, digest_size=8).digest(), "big") / _SCALE
    wanted = jitter * share
    if next_slot is None:
        return wanted
    return min(wanted, max(timedelta(0), next_slot - slot - timedelta(microseconds=1)))
