"""A server that answers as an engine does, and keeps what it was asked."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Engine(BaseHTTPRequestHandler):
    asked: list[tuple[str, dict[str, Any], str]]

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "the-model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body, self.headers.get("Authorization", "")))
        if self.path == "/tokenize":
            self._answer(200, {"tokens": [1, 2, 3], "count": 3})
        elif body.get("prompt") == "too long":
            self._answer(400, {"error": {"message": "the prompt is\ntoo long", "code": 400}})
        elif body.get("prompt") == "no JSON":
            self._answer(200, [])
        else:
            usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
            self._answer(200, {"usage": usage})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving() -> Generator[tuple[int, list[tuple[str, dict[str, Any], str]]]]:
    asked: list[tuple[str, dict[str, Any], str]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("_", (_Engine,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
