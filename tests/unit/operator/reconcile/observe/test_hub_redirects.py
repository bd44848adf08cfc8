"""Where the operator's client of the Hub lets a server send it, and what it takes along."""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.cluster.harness.control_plane.certificates import Authority
from tests.cluster.harness.stand_ins.http_server import serving

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.reconcile.observe import huggingface
from kvtier_operator.reconcile.observe.huggingface import HubClient, NotPublicError, is_public

CONFIG = json.dumps({"num_hidden_layers": 4, "quantization_config": {}})
TOKEN = "Bearer hf_secret"  # noqa: S105 - nobody's
HUB, FILES = "hub.example", "files.example"
Asked = list[tuple[str, str | None]]


class Site:
    """A server: what it answers (status, Location, body), and what it was asked with which token."""

    def __init__(self) -> None:
        self.asked: Asked = []
        self.says: Callable[[str], tuple[str, str, str]] = lambda _path: ("200 OK", "", CONFIG)
        self.port = 0

    def sends_on(self, location: str) -> None:
        self.says = lambda _path: ("302 Found", location, CONFIG)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, self.headers["Authorization"]))
                status, location, body = site.says(self.path)
                header = f"Location: {location}\r\n" if location else ""
                head = (
                    f"HTTP/1.1 {status}\r\n{header}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
                self.wfile.write((head + body).encode())
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The addresses of names; asked for one that is not here, the test's resolver says that there is none."""
    known = {HUB: "127.0.0.1", FILES: "127.0.0.2"}
    real = socket.getaddrinfo

    def look_up(host: str, port: int, *_: object) -> object:
        if host not in known and not host.startswith("127."):
            raise socket.gaierror(socket.EAI_NONAME, f"looked up {host}")
        return real(known.get(host, host), port, type=socket.SOCK_STREAM)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "KVTIER_HUB_HOSTS"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def serve() -> Iterator[Callable[..., Site]]:
    with ExitStack() as running:

        def start(host: str, tls: ssl.SSLContext | None = None) -> Site:
            site = Site()
            site.port = running.enter_context(serving(site.handler(), host, tls=tls))
            return site

        yield start


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of both names; the client trusts it."""
    authority = Authority(tmp_path)
    pair = authority.sign("server", hosts=[HUB, FILES])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    trusting = ssl.create_default_context(cafile=str(authority.file))
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    return context


def said(endpoint: str, monkeypatch: pytest.MonkeyPatch, revision: str | None = None) -> object:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    try:
        return asyncio.run(HubClient(TOKEN).config("team/model", revision))
    except KvtierError as error:
        return error


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/latest/meta-data",
        "//127.0.0.2:{port}/latest/meta-data",
        "http://127.0.0.1:{port}/",
        "http://HUB.example:{port}/",
        "http://0x7f.2:{port}/",
        "http://2130706434:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "http://[::1",
        "https://us.aws.cdn.hf.co/config.json",
        "ftp://127.0.0.1/",
        "",
    ],
)
def test_a_mirror_without_tls_sends_to_nobody_else(
    location: str, serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror, metadata, beside = serve("127.0.0.1"), serve("127.0.0.2"), serve("127.0.0.1")
    port = beside.port if "127.0.0.1:" in location or "HUB" in location else metadata.port
    mirror.sends_on(location.format(port=port))
    answer = said(f"http://127.0.0.1:{mirror.port}", monkeypatch)
    assert isinstance(answer, UnreachableError)
    assert len(str(answer)) < 600
    assert not metadata.asked
    assert not beside.asked
    assert len(mirror.asked) <= 4


def test_redirects_of_the_endpoint_itself_have_an_end(
    serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = serve("127.0.0.1")
    mirror.says = lambda path: ("200 OK", "", CONFIG) if "cache" in path else ("307 x", "/cache/x", "")
    answer = said(f"http://127.0.0.1:{mirror.port}/hf", monkeypatch)
    assert isinstance(answer, tuple)
    assert mirror.asked == [("/hf/team/model/resolve/main/config.json", TOKEN), ("/cache/x", TOKEN)]
    mirror.sends_on("/again")
    assert isinstance(said(f"http://127.0.0.1:{mirror.port}", monkeypatch), UnreachableError)
    assert len(mirror.asked) == 2 + 4


@pytest.mark.parametrize(
    ("location", "is_followed"),
    [
        ("https://us.aws.cdn.hf.co/x", True),
        ("https://HF.co/x", True),
        ("https://cdn-lfs-us-1.huggingface.co:443/x", True),
        ("https://hf.co.example/x", False),
        ("https://evilhf.co/x", False),
        ("https://us.aws.cdn.hf.co:8443/x", False),
        ("https://us.aws.cdn.hf.co./x", False),
        ("http://us.aws.cdn.hf.co/x", False),
        ("http://hub.example/x", False),
        ("https://hub.example/x", False),
        ("https://127.0.0.2/x", False),
        ("https://hf.co@127.0.0.2/x", False),
    ],
)
def test_the_hubs_own_hosts_are_asked_by_https_alone(
    location: str,
    is_followed: bool,
    serve: Callable[..., Site],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = serve("127.0.0.1", tls)
    hub.sends_on(location)
    answer = str(said(f"https://{HUB}:{hub.port}", monkeypatch))
    assert len(hub.asked) == 1
    assert (": sent on to " not in answer) == is_followed
    assert ("looked up " in answer or "Cannot connect" in answer) == is_followed


def test_who_is_named_is_followed_without_the_token(
    serve: Callable[..., Site],
    tls: ssl.SSLContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n", encoding="utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    hub, files = serve("127.0.0.1", tls), serve("127.0.0.2", tls)
    hub.sends_on(f"https://you:too@{FILES}:{files.port}/x")
    assert isinstance(said(f"https://{HUB}:{hub.port}", monkeypatch), UnreachableError)
    monkeypatch.setenv("KVTIER_HUB_HOSTS", f"other.example,{FILES}:{files.port}")
    assert isinstance(said(f"https://{HUB}:{hub.port}", monkeypatch), tuple)
    assert {token for _, token in hub.asked} == {TOKEN}
    assert files.asked == [("/x", None)]


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "10.0.0.1", "127.0.0.9", "fd00:ec2::254", "::ffff:169.254.169.254"]
)
def test_a_name_of_the_hubs_at_a_private_address(
    address: str,
    names: dict[str, str],
    serve: Callable[..., Site],
    tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = serve("127.0.0.1", tls)
    hub.sends_on("https://cdn.hf.co/x")
    names["cdn.hf.co"] = address
    monkeypatch.setattr(huggingface, "is_public", lambda each: each == names[HUB] or is_public(each))
    answer = said(f"https://{HUB}:{hub.port}", monkeypatch)
    assert isinstance(answer, UnreachableError)
    assert str(answer) == f"cdn.hf.co is at {address}, which is no address of the Internet"


def test_neighbours_of_an_endpoint_at_a_private_address(
    names: dict[str, str], serve: Callable[..., Site], tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve("127.0.0.1", tls)
    hub.sends_on("https://cdn.hf.co/x")
    names["cdn.hf.co"] = "127.0.0.9"
    assert "Cannot connect to host cdn.hf.co" in str(said(f"https://{HUB}:{hub.port}", monkeypatch))


@pytest.mark.parametrize("reason", ["x" * 8000, "x" * (1 << 20), "a\x1b[31mred\x07", "a\rb", "é" * 3000])
def test_what_a_server_says_is_cut_and_cleaned(
    reason: str, serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve("127.0.0.1")
    hub.says = lambda _path: (f"503 {reason}", "", "")
    answer = str(said(f"http://127.0.0.1:{hub.port}", monkeypatch))
    assert len(answer) < 400
    assert answer.isprintable()


@pytest.mark.parametrize(
    "revision",
    [
        "..",
        "../..",
        ".",
        "%2e%2e",
        "a/../b",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        "a?b",
        "a#b",
        "a\n",
        "a\x00",
        "-x",
        "",
    ],
)
def test_a_revision_that_is_none_is_not_asked_for(
    revision: str, serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve("127.0.0.1")
    answer = said(f"http://127.0.0.1:{hub.port}", monkeypatch, revision)
    assert isinstance(answer, NotPublicError)
    assert hub.asked == []


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/1", "feature/a_b+c", "0123abc"])
def test_a_revision_is_one_part_of_the_path(
    revision: str, serve: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = serve("127.0.0.1")
    assert isinstance(said(f"http://127.0.0.1:{hub.port}", monkeypatch, revision), tuple)
    assert hub.asked == [(f"/team/model/resolve/{quote(revision, safe='')}/config.json", TOKEN)]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(
            ("HF_ENDPOINT", each)
            for each in (
                "hub.example",
                "ftp://hub.example",
                "https://a:b@hub.example",
                "https://",
                "https://x/?a",
            )
        ),
        *(("KVTIER_HUB_HOSTS", host) for host in ("https://a", "a/b", "a@b", "a:b", "a,b?c", ":1")),
    ],
)
def test_a_setting_that_is_none(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidInputError, match=f"^{variable}: "):
        HubClient()
