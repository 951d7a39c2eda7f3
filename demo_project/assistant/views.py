"""The session service: what docs/reference/session-service.md says, over the demo's database.

Some models of it are there to be watched: `down` answers prompts with 503, and `slow` answers after twenty seconds.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from threading import Event as Pause
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from demo_project.assistant.answers import answer_to
from demo_project.assistant.models import Message, Session

THINKS = timedelta(seconds=5)
SLOW_SECONDS = 20
LARGEST = 256 * 1024
TEXTS = {"name": 255, "source": 50, "model": 100, "working_directory": 500}
"""What a new session is told, and how long each text may be."""
SHOWN = 8
"""Messages of a session that its page shows."""

View = Callable[..., HttpResponse]


def error(status: int, text: str) -> JsonResponse:
    """Return an error as JSON."""
    return JsonResponse({"error": text}, status=status)


def for_clients(*methods: str) -> Callable[[View], View]:
    """Let in who has the token. It is no cookie, so there is nothing for CSRF protection to protect."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @never_cache
        @require_http_methods(methods)
        def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            token = request.headers.get("Authorization", "")
            if not constant_time_compare(token, f"Bearer {settings.ASSISTANT_TOKEN}"):
                return error(401, "Send the token of the assistant: Authorization: Bearer …")
            Session.objects.done_with(timezone.now()).delete()
            return view(request, **kwargs)

        return guarded

    return decorate


@for_clients("GET", "POST")
def sessions(request: HttpRequest) -> HttpResponse:
    """List the sessions of a source, or create one."""
    if request.method == "POST":
        return _create(request)
    found = Session.objects.open()
    if source := request.GET.get("source"):
        found = found.filter(source=source)
    return JsonResponse({"sessions": [_about(session) for session in found]})


@for_clients("GET", "DELETE")
def session(request: HttpRequest, id: str) -> HttpResponse:
    """Show a session with what was said in it, or delete it as soon as it has finished its work."""
    found = Session.objects.open().filter(pk=id)
    if request.method == "DELETE":
        closed = found.update(closed_at=timezone.now(), key=None)
        return HttpResponse(status=204) if closed else error(404, "There is no such session.")
    one = found.first()
    if one is None:
        return error(404, "There is no such session.")
    return JsonResponse(_about(one) | {"messages": list(one.messages.values("prompt", "answer", "sent_at"))})


@for_clients("POST")
def messages(request: HttpRequest, id: str) -> HttpResponse:
    """Take a prompt, and begin to work on it."""
    body = _body(request)
    prompt = body.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return error(422, "Send an object with a text `prompt`.")
    key = request.headers.get("Idempotency-Key", "")[:100]
    with transaction.atomic():
        one = Session.objects.open().select_for_update().filter(pk=id).first()
        if one is None:
            return error(404, "There is no such session.")
        if key and one.messages.filter(key=key).exists():
            return JsonResponse({"taken": True}, status=202)
        if one.model == "down":
            return error(503, "This model is down.")
        if one.model != "slow":
            return _take(one, prompt, key)
    Pause().wait(SLOW_SECONDS)
    return error(504, "This model was too slow.")


@require_safe
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Show what was said in the sessions."""
    found = Session.objects.prefetch_related("messages")[:50]
    talks = [(one, list(one.messages.all())[-SHOWN:]) for one in found]
    return render(request, "assistant/page.html", {"talks": talks, "now": timezone.now()})


def _create(request: HttpRequest) -> HttpResponse:
    body, key = _body(request), request.headers.get("Idempotency-Key", "")[:100] or None
    about = {name: body.get(name, "") for name in TEXTS}
    wrong = [name for name, most in TEXTS.items() if not isinstance(about[name], str) or len(about[name]) > most]
    if wrong or not isinstance(body.get("persist", True), bool):
        return error(422, f"Wrong: {', '.join(wrong) or 'persist'}.")
    made = {**about, "persist": body.get("persist", True), "created_at": timezone.now()}
    if key is None:
        return JsonResponse(_about(Session.objects.create(**made)), status=201)
    one, is_new = Session.objects.get_or_create(key=key, defaults=made)
    return JsonResponse(_about(one), status=201 if is_new else 200)


def _take(one: Session, prompt: str, key: str) -> HttpResponse:
    now = timezone.now()
    if one.busy_until is not None and one.busy_until > now:
        return error(409, "It works on another prompt.")
    one.busy_until = now + THINKS
    one.save(update_fields=["busy_until"])
    Message.objects.create(
        session=one, key=key, prompt=prompt, answer=answer_to(prompt, now), sent_at=now, answered_at=one.busy_until
    )
    return JsonResponse({"taken": True}, status=202)


def _body(request: HttpRequest) -> dict[str, Any]:
    """Return the object that was sent; empty where there is none."""
    try:
        found = json.loads(request.body) if int(request.headers.get("Content-Length") or 0) <= LARGEST else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _about(one: Session) -> dict[str, Any]:
    about = {name: getattr(one, name) for name in ("id", *TEXTS, "persist", "created_at")}
    return about | {"is_busy": one.busy_until is not None and one.busy_until > timezone.now()}
