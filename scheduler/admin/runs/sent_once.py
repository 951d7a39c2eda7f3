"""Sent once: what a form asks for is carried out once, although it is clicked twice."""

from collections.abc import Callable
from typing import NamedTuple

from django.http import HttpRequest

from scheduler.engine.control import KeyedRequest
from scheduler.engine.control.keyed import KEPT, Begun
from scheduler.models.idempotency_key import IdempotencyKey

TOKEN = "csrfmiddlewaretoken"
"""Django makes a new one for each page that it renders: two requests with the same were sent by the same form."""


class Sent(NamedTuple):
    """How many rows a form has made, and whether it was sent before."""

    rows: int
    before: bool = False


def sent_once(request: HttpRequest, make: Callable[[], int]) -> Sent:
    """Have `make` make rows, unless the same form has done so; raises Refused while it is about to.

    What it makes may be committed in parts, so that no other request goes on in its place: a new page is a new form.
    """
    token = request.POST.get(TOKEN, "")
    if not token:
        return Sent(make())

    def made_now(begun: Begun) -> Sent:
        if count := make():
            begun.remember(count)
        else:
            begun.forget()
        return Sent(count)

    def made_before(known: IdempotencyKey) -> Sent:
        return Sent(known.made, before=True)

    said = [request.path, sorted((name, sorted(values)) for name, values in request.POST.lists())]
    # Another choice on the same page, after a step back in the browser, is another form.
    keyed = KeyedRequest.of(f"{token} {said}", f"admin {request.user.pk}", said)
    return keyed.once(made_now, made_before, longest=KEPT)
