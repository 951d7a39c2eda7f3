"""Names of addresses and permissions: they begin with the label of the app, which a project may choose."""

from typing import Any

from django.urls import reverse

from scheduler.models import Job


def labelled(name: str) -> str:
    """Return the name of an address of ours, such as `job_page`, without the site."""
    return f"{Job._meta.app_label}_{name}"


def address_of(site: str, name: str, *args: Any) -> str:
    """Return the address of a page of the site of that name, such as `job_page`."""
    return reverse(f"{site}:{labelled(name)}", args=args)


def right_named(codename: str) -> str:
    """Return the full name of a permission of ours, such as `run_job`."""
    return f"{Job._meta.app_label}.{codename}"
