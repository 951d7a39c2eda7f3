"""ETags: the state of an answer, and the version of the job in it.

`"<id>-<version>-<digest>"`: conditions of a write look at the id and the version only, so that an ETag stays good while
nothing but the time of day has changed in the answer. A proxy that compresses makes an ETag weak; `W/` is taken off.
"""

import re
from collections.abc import Collection

from scheduler.api.problem import ApiProblem
from scheduler.engine.control import ANY_VERSION

ONE = re.compile(r'(?:W/)?"([^"]*)"')
LONGEST = 2000
ANY = "*"


def tags_in(header: str) -> list[str]:
    """Return what stands in a list of ETags, without quotes; one that was not quoted counts as one."""
    header = header[:LONGEST]
    return ONE.findall(header) or [part.strip() for part in header.split(",") if part.strip()]


def matches(header: str, etag: str) -> bool:
    """Return whether one of the ETags of a header is this one, compared as RFC 9110 does for reading: weakly."""
    return header.strip() == ANY or etag.strip('"') in tags_in(header)


def versions_in(header: str) -> Collection[str] | None:
    """Return the versions that an If-Match lets through, for `if_version`; None: there is no condition."""
    if not header.strip():
        return None
    if header.strip() == ANY:
        return [ANY_VERSION]
    return ["-".join(tag.split("-")[:2]) for tag in tags_in(header)]


def refuse_both(versions: Collection[str] | None) -> None:
    """Raise a problem with status 412 when an If-Match comes with an If-None-Match that wants a job to be new."""
    if versions is not None:
        raise ApiProblem("changed", "If-Match wants a job that is there, and If-None-Match one that is not.")


def wants_new(header: str) -> bool:
    """Return whether an If-None-Match wants a job to be new."""
    return header.strip() == ANY
