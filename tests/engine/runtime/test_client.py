"""The measuring client against a real HTTP server with prepared answers."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.measure import OpenAIClient, Query

Serve = Callable[..., str]
QUERY = Query.completion("m", "prompt", 2)


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(body: bytes, status: int = 200, *, close_after: bool = False) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = close_after  # without saying so, as an idle timeout does

            do_GET = do_POST  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_first_token_is_the_first_content_of_a_chat(serve: Serve) -> None:
    url = serve(
        b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
        b'data: {"choices":[{"delta":{"content":"He"}}]}\n\n'
        b'data: {"choices":[{"delta":{"content":"llo"}}]}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n'
        b"data: [DONE]\n\n"
    )
    with OpenAIClient(url + "/v1/") as client:
        answer = client.ask(Query.chat("m", "prompt", 2))
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("Hello", 7, 2)
    assert 0 < answer.ttft_s <= answer.total_s


def test_a_connection_that_the_server_closed_is_opened_again(serve: Serve) -> None:
    url = serve(b'data: {"choices":[{"text":"a"}]}\n\n', close_after=True)
    with OpenAIClient(url) as client:
        assert [client.ask(QUERY).text for _ in range(3)] == ["a"] * 3


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            b'{"error":{"message":"context length\\nis 100"}}',
            400,
            "/v1/completions: 400 context length is 100",
        ),
        (b"<html>gone</html>", 502, "502 <html>gone</html>"),
        (b'data: {"error":{"message":"broken"}}\n\n', 200, "broken"),
        (b"data: not json\n\n", 200, "not an OpenAI-compatible server"),
        (b"data: " + b"[" * 100_000, 200, "not an OpenAI-compatible server"),
        (b"data: " + b"x" * (4 << 20), 200, "not an OpenAI-compatible server"),
        (b'data: {"choices": 1, "usage": 1}\n\n', 200, "generated nothing"),
        (b'data: {"choices": [{"delta": [], "text": 1}]}\n\n', 200, "generated nothing"),
        (b"x" * (4 << 20), 500, "more than 4,194,304 bytes"),
        (b"data: [DONE]\n\n", 200, "generated nothing"),
    ],
)
def test_what_a_server_says_instead(serve: Serve, body: bytes, status: int, message: str) -> None:
    with OpenAIClient(serve(body, status)) as client, pytest.raises(RuntimeFailedError) as raised:
        client.ask(QUERY)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 100_000, "not an OpenAI-compatible server: more than 64"),
        (b"[]", "not an OpenAI-compatible server: no JSON object"),
        (b'{"data": [1]}', "the server lists no model"),
        (b'{"data": {"id": "m"}}', "the server lists no model"),
        (b"x" * (4 << 20), "the server answers with more than 4,194,304 bytes"),
    ],
)
def test_a_list_of_models_that_is_none(serve: Serve, body: bytes, message: str) -> None:
    with OpenAIClient(serve(body)) as client, pytest.raises(RuntimeFailedError, match=message):
        client.first_model()


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:notaport"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(RuntimeFailedError, match="not a URL"):
        OpenAIClient(url)


def test_a_server_that_is_not_there() -> None:
    with (
        OpenAIClient("http://127.0.0.1:9") as client,
        pytest.raises(RuntimeFailedError, match="does not answer"),
    ):
        client.first_model()
