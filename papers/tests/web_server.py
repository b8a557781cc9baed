"""Web server with failures and interrupted transfers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Web:
    """Files by path, failures, and the paths that were requested."""

    files: dict[str, bytes]
    port: int = 0
    #: Bytes after which the connection is cut, one number per answer, until none are left.
    cuts: list[int] = field(default_factory=list)
    #: Status codes to answer with instead, until none are left.
    failures: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def address(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def serving(files):
    """Serve in a thread; yields the Web."""
    web = Web({f"/{name}": content for name, content in files.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self, web)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            # A proxy would look for the server elsewhere.
            patch.setenv("no_proxy", "127.0.0.1")
            # Of pooch, between two tries.
            patch.setattr("time.sleep", lambda seconds: None)
            yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(handler, web):
    web.requests.append(handler.path)
    if web.failures:
        handler.send_error(web.failures.pop(0))
    elif handler.path not in web.files:
        handler.send_error(404)
    else:
        content = web.files[handler.path]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: web.cuts.pop(0) if web.cuts else None])
