"""A session service in memory, which a test can break: what `docs/reference/session-service.md` says, and no more."""

import json
from collections.abc import Callable
from typing import Any

import httpx

Fault = Callable[[httpx.Request], httpx.Response | None]


class SessionService:
    """Answers the requests of `send_prompt` as a transport; `asked` is what it was asked, `prompts` what it took."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.prompts: list[tuple[str, str]] = []
        self.asked: list[httpx.Request] = []
        self.busy: set[str] = set()
        self.faults: dict[str, Fault] = {}
        """What happens instead of an answer, by the step: create, send, list or delete."""
        self._made = 0
        self._by_key: dict[str, str] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step, session = self._step(request)
        fault = self.faults.get(step)
        answer = fault(request) if fault else None
        return answer or getattr(self, f"_{step}")(request, session)

    @property
    def steps(self) -> list[str]:
        """The names of what was asked, in order."""
        return [self._step(request)[0] for request in self.asked]

    def add(self, session: str, *, source: str = "scheduler", created_at: str = "2025-01-01T00:00:00Z") -> None:
        """Have a session that was made some time before."""
        self.sessions[session] = {"id": session, "source": source, "created_at": created_at}

    def fail(self, step: str, status: int, text: str = "") -> None:
        """Answer a step with a status until `faults` is cleared."""
        self.faults[step] = lambda request: httpx.Response(status, text=text)

    def raise_on(self, step: str, error: Exception) -> None:
        def fault(request: httpx.Request) -> None:
            raise error

        self.faults[step] = fault

    @staticmethod
    def _step(request: httpx.Request) -> tuple[str, str]:
        path = request.url.raw_path.decode().partition("?")[0].partition("/api/sessions")[2].strip("/")
        session, _, rest = path.partition("/")
        names = {("POST", ""): "create", ("GET", ""): "list", ("DELETE", ""): "delete", ("POST", "messages"): "send"}
        return names[request.method, rest], session

    def lose_answer(self, step: str) -> None:
        """Do what is asked, once, and let the connection break before the answer is there."""

        def fault(request: httpx.Request) -> None:
            del self.faults[step]
            self(request)
            raise httpx.ReadError("connection reset")

        self.faults[step] = fault

    def _create(self, request: httpx.Request, _: str) -> httpx.Response:
        key = request.headers["Idempotency-Key"]
        if (known := self._by_key.get(key)) in self.sessions:
            return httpx.Response(200, json={"id": known})
        self._made += 1
        session = self._by_key[key] = f"s{self._made}"
        about = json.loads(request.content)
        self.sessions[session] = {**about, "id": session, "created_at": f"2026-01-01T00:00:{self._made:02}Z"}
        return httpx.Response(201, json={"id": session})

    def _send(self, request: httpx.Request, session: str) -> httpx.Response:
        if session not in self.sessions:
            return httpx.Response(404, json={"error": "no such session"})
        if session in self.busy:
            return httpx.Response(409, json={"error": "it works on another prompt"})
        if (key := f"{session} {request.headers['Idempotency-Key']}") in self._by_key:
            return httpx.Response(202)
        self._by_key[key] = session
        self.prompts.append((session, json.loads(request.content)["prompt"]))
        return httpx.Response(202)

    def _list(self, request: httpx.Request, _: str) -> httpx.Response:
        return httpx.Response(200, json={"sessions": list(self.sessions.values())[::-1]})

    def _delete(self, request: httpx.Request, session: str) -> httpx.Response:
        return httpx.Response(204 if self.sessions.pop(session, None) else 404)
