"""Addresses of the admin, and what stands in its answers."""

import re
from html import unescape

from django.contrib.messages import get_messages
from django.http import HttpResponse
from django.urls import reverse

JOBS = "admin:scheduler_job_changelist"


def page(name: str, *args: object) -> str:
    return reverse(f"admin:scheduler_{name}", args=args)


def told(response: HttpResponse) -> list[str]:
    """The messages a person is shown next."""
    return [str(message) for message in get_messages(response.wsgi_request)]


def text_of(response: HttpResponse) -> str:
    """The words of a page, without its tags."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", response.text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
