"""What `-f https://...` reads, from a server with a certificate of its own authority."""

import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.cases.kvcachetier import document
from tests.cluster.harness.control_plane.certificates import Authority
from tests.cluster.harness.stand_ins.http_server import serving

from kvtier_operator.cli.inputs import url as read_by_url
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.errors import InvalidInputError

TIER = json.dumps(document({})).encode()


@dataclass
class Site:
    """A server: what it answers to every request."""

    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = TIER
    ended: Event = field(default_factory=Event)  # until then a body that is empty stays away

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/cr.yaml"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not site.body:
                    site.ended.wait()
                self.send_response(site.status)
                for name, value in site.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(site.body)

            def log_message(self, *_arguments: Any) -> None:  # noqa: ANN401 - as the base class has it
                """Nobody reads it."""

        return Handler


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def site(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    pair = authority.sign("server", addresses=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()
    with serving(site.handler(), tls=context) as site.port:
        yield site
        site.ended.set()


def said(url: str) -> str:
    with pytest.raises(InvalidInputError) as refused:
        load_resources([url])
    return str(refused.value).removeprefix(f"{url}: ")


def test_a_resource(site: Site) -> None:
    [(source, resource)] = load_resources([site.url])
    assert (source, resource.metadata.name) == (site.url, "qwen3-32b")


def test_a_certificate_of_nobody(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path).file))
    assert said(site.url).startswith("cannot be read: its certificate is not trusted: ")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({"status": 404}, "cannot be read: 404 Not Found"),
        ({"headers": {"Content-Type": "text/html; charset=utf-8"}}, "is a web page; give the address of the"),
        ({"body": b" " * (8 << 20) + TIER}, "has more than 8 MiB, which no such file has"),
        ({"body": b"a: ["}, "not YAML: "),
        (
            {"status": 302, "headers": {"Location": "http://127.0.0.1/x"}},
            "sends on to http://127.0.0.1/x, and only https:// addresses are read",
        ),
        ({"status": 302, "headers": {"Location": "/again"}}, "cannot be read: 302 "),
    ],
    ids=["404", "page", "large", "not-yaml", "to-http", "to-itself"],
)
def test_what_is_no_file(site: Site, answer: dict[str, Any], line: str) -> None:
    for name, value in answer.items():
        setattr(site, name, value)
    assert said(site.url).startswith(line)


def test_no_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_by_url, "_TIMEOUT_S", 0.1)
    site.body = b""
    assert said(site.url) == "cannot be read: no answer for 0.1 s"


def test_an_answer_that_does_not_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_by_url, "_WHOLE_S", 0.0)
    assert said(site.url) == "cannot be read: it takes more than 0 s"


@pytest.mark.parametrize("url", ["http://x/cr.yaml", "file:///cr.yaml", "s3://bucket/cr.yaml"])
def test_another_scheme(url: str) -> None:
    assert said(url) == "only https:// addresses are read; download it, and give the file"


def test_a_password_is_not_repeated() -> None:
    line = said("https://me:secret@127.0.0.1/cr.yaml")
    assert line.startswith("https://127.0.0.1/cr.yaml: has a user in it")
    assert "secret" not in line
