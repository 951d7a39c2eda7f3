"""Served API: whether this project serves the REST API, and where its pages for people are. Loads nothing of it."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, get_resolver, reverse

from scheduler.admin.page_context import once_in

OPERATIONS = ("list_jobs", "read_job", "read_status")
"""Names of addresses that a NinjaAPI with our router has together."""
NAME = "job"
"""Stands for the name of any job in an address."""


@dataclass(frozen=True, slots=True)
class ServedAPI:
    """Where the API is."""

    docs: str
    """The address of its pages for people; empty where the project serves none."""
    jobs: str
    """The address of the list of jobs."""


def served_api(request: HttpRequest) -> ServedAPI | None:
    """Return where the API is; None where the URLs of the project do not have it, in a namespace of their first level.

    Looked for once in a request.
    """
    return once_in(request, "scheduler_api", lambda: _found(getattr(request, "urlconf", None)))


def _found(urlconf: str | None) -> ServedAPI | None:
    for namespace in get_resolver(urlconf).namespace_dict:
        addresses = [_address(f"{namespace}:{name}", NAME) for name in OPERATIONS]
        if all(addresses):
            return ServedAPI(docs=_address(f"{namespace}:openapi-view"), jobs=addresses[0])
    return None


def _address(name: str, *args: str) -> str:
    for given in ((), args):
        try:
            return reverse(name, args=given)
        except NoReverseMatch:
            continue
    return ""
