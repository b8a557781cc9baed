"""A small web server that can cut connections, forget ranges, and lie."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Web:
    """What is served under which path, and how; ``requests`` is what was asked for."""

    files: dict[str, bytes]
    port: int = 0
    #: Bytes after which the connection is cut, one number per answer, until none are left.
    cuts: list[int] = field(default_factory=list)
    #: Status codes to answer with instead, until none are left.
    failures: list[int] = field(default_factory=list)
    knows_ranges: bool = True
    #: What a partial answer claims to begin with, where it is not the truth.
    claimed_start: int | None = None
    #: Leave out how long the file is.
    tells_length: bool = True
    #: Set by a test to hold answers back until it sets it again.
    gate: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def address(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    @property
    def ranges(self):
        return [asked for _, asked in self.requests]


@contextmanager
def serving(files):
    """Serve in a thread; yields the Web."""
    web = Web({f"/{name}": content for name, content in files.items()})
    web.gate.set()

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
            yield web
    finally:
        web.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


def answer(handler, web):
    asked = handler.headers.get("Range")
    web.requests.append((handler.path, asked))
    web.gate.wait(20)
    if web.failures:
        handler.send_error(web.failures.pop(0))
        return
    if handler.path not in web.files:
        handler.send_error(404)
        return
    content = web.files[handler.path]
    start = int(re.match(r"bytes=(\d+)-", asked)[1]) if asked and web.knows_ranges else 0
    if start >= len(content) and start:
        handler.send_response(416)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    send(handler, web, content, start)


def send(handler, web, content, start):
    handler.send_response(206 if start else 200)
    if start:
        first = start if web.claimed_start is None else web.claimed_start
        handler.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
    if web.tells_length:
        handler.send_header("Content-Length", str(len(content) - start))
    handler.end_headers()
    cut = web.cuts.pop(0) if web.cuts else None
    handler.wfile.write(content[start:][:cut])
