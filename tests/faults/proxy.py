"""A TCP proxy between one runner and its database, which can delay, stall, refuse, and drop the reply to a COMMIT."""

import random
import socket
import threading
from contextlib import suppress

from tests.faults.timing import pause

CHUNK = 65536
COMMITS = (b"commit", b"COMMIT")


class Proxy:
    """Listens on a port of its own. The modes may be changed at any time, from any thread."""

    def __init__(self, target: int, seed: int = 0) -> None:
        self.delay = 0.0
        """Every answer is late by a random time up to this one."""
        self.stalled = threading.Event()
        self.refusing = False
        self.drop_commit_in = 0
        """The reply to this many-th COMMIT from now is dropped, and the connection with it; 0: none."""
        self.dropped = self.held = self.delayed = self.refused = 0
        """How many replies were dropped, messages held back, answers late, and connections refused."""
        self._target = target
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def heal(self) -> None:
        """Let everything through again."""
        self.delay, self.refusing, self.drop_commit_in = 0.0, False, 0
        self.stalled.clear()

    def cut(self) -> int:
        """Break every connection that there is; return how many."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        living = [pair for pair in pairs if pair[0].fileno() >= 0]
        for pair in living:
            _close(*pair)
        return len(living)

    def close(self) -> None:
        self.refusing = True
        self.heal()
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                self.refused += 1
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._pairs.append((client, server))
        drop = threading.Event()
        threading.Thread(target=self._requests, args=(client, server, drop), daemon=True).start()
        self._answers(client, server, drop)

    def _requests(self, client: socket.socket, server: socket.socket, drop: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(CHUNK):
                self._hold()
                if self._is_the_one(data):
                    drop.set()
                server.sendall(data)
        _close(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, drop: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(CHUNK):
                if drop.is_set():  # the database has committed; nobody will hear of it
                    self.dropped += 1
                    break
                if self.delay:
                    self.delayed += 1
                    pause(self._random.uniform(0, self.delay))
                self._hold()
                client.sendall(data)
        _close(client, server)

    def _hold(self) -> None:
        self.held += self.stalled.is_set()
        while self.stalled.is_set():
            pause(0.02)

    def _is_the_one(self, data: bytes) -> bool:
        if not self.drop_commit_in or len(data) > 64 or not any(word in data for word in COMMITS):
            return False
        self.drop_commit_in -= 1
        return self.drop_commit_in == 0


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
