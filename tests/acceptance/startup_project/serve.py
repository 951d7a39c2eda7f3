"""A server of one's own that forks its workers after it has loaded the application, unknown to any list."""

import os
import sys
from http.server import ThreadingHTTPServer
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from probe.wsgi import application


class Server(ThreadingHTTPServer, WSGIServer):
    """One thread for each request."""


def fork_workers(count: int) -> list[int]:
    """Return the pids of the workers in the master, an empty list in a worker."""
    pids = []
    for _ in range(count):
        if (pid := os.fork()) == 0:
            return []
        pids.append(pid)
    return pids


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), WSGIRequestHandler)
    server.set_app(application)
    if workers := fork_workers(int(sys.argv[2])):
        for pid in workers:
            os.waitpid(pid, 0)
    else:
        server.serve_forever()
