"""A mail server and a web server that keep what they are sent; each may be silent, or answer as a test says."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Post:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Sink(BaseHTTPRequestHandler):
    """Keeps every request and answers with the next of `answers`, 200 when there is none."""

    posts: ClassVar[list[Post]]
    answers: ClassVar[list[tuple[int, bytes, dict[str, str]]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posts.append(Post(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self._answer()

    def do_GET(self) -> None:
        self.posts.append(Post(self.path, {}, b""))
        self._answer()

    def _answer(self) -> None:
        status, body, headers = self.answers.pop(0) if self.answers else (200, b"ok", {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def web_server(port: int = 0) -> Iterator[Any]:
    """Serve on a port of the system's choice; the server has `posts`, `answers` and `server_port`."""
    handler = type("OwnSink", (Sink,), {"posts": [], "answers": []})
    server: Any = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.posts, server.answers = handler.posts, handler.answers
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class MailServer:
    """As much SMTP as a client needs to hand over a mail."""

    listener: socket.socket
    mails: list[EmailMessage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.port = int(self.listener.getsockname()[1])

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, client.makefile("rwb") as lines, suppress(OSError):
            self._say(lines, b"220 sink")
            while line := lines.readline():
                command = line.strip().upper()
                if command == b"DATA":
                    self._say(lines, b"354 go on")
                    self._keep(lines)
                    self._say(lines, b"250 kept")
                elif command == b"QUIT":
                    self._say(lines, b"221 bye")
                    return
                else:
                    self._say(lines, b"250 ok")

    def _keep(self, lines: Any) -> None:
        found = []
        while (line := lines.readline()) not in (b".\r\n", b""):
            found.append(line[1:] if line.startswith(b"..") else line)
        self.mails.append(message_from_bytes(b"".join(found), policy=policy.default))

    @staticmethod
    def _say(lines: Any, text: bytes) -> None:
        lines.write(text + b"\r\n")
        lines.flush()


@contextmanager
def mail_server(port: int = 0, *, silent: bool = False) -> Iterator[MailServer]:
    """Take mails on a port of the system's choice; a `silent` one takes connections and says nothing."""
    listener = socket.create_server(("127.0.0.1", port))
    server = MailServer(listener)
    if not silent:
        threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
