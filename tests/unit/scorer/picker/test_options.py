"""Where the command line says that pods come from, and who may ask for explanations."""

from dataclasses import replace
from pathlib import Path

import pytest

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.options import (
    POOL_GROUP,
    ExplainAccess,
    PodsFlags,
    Pool,
    Selection,
    explain_access,
    pods_of,
)

TOKEN = "0123456789abcdef"  # noqa: S105 - of this test


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.mark.parametrize(
    ("address", "host"),
    [("127.0.0.1:9091", "127.0.0.1"), ("127.1.2.3:9091", "127.1.2.3"), ("[::1]:9091", "::1")],
)
def test_loopback_needs_no_token(address: str, host: str) -> None:
    assert explain_access(address, None) == ExplainAccess(host, 9091)


def test_nobody_may_be_answered() -> None:
    assert explain_access("off", None) is None


@pytest.mark.parametrize("address", ["0.0.0.0:9091", "[::]:9091", "10.0.0.7:9091", "[::ffff:10.0.0.7]:9091"])
def test_any_other_address_needs_one(address: str, token_file: Path) -> None:
    with pytest.raises(PickerConfigError, match="give --explain-token-file, or a loopback address"):
        explain_access(address, None)
    access = explain_access(address, token_file)
    assert access
    assert access.token == TOKEN.encode()
    assert TOKEN not in repr(access)


@pytest.mark.parametrize(
    "address",
    ["", "9091", ":9091", "localhost:9091", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:²"],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(PickerConfigError, match="is not an ip:port"):
        explain_access(address, None)


@pytest.mark.parametrize("text", ["", "\n", "short", "x" * 4097])
def test_what_is_no_token(text: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    with pytest.raises(PickerConfigError, match="a token has 16 to 4096"):
        explain_access("127.0.0.1:9091", path)


@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        ("", False),
        ("Bearer ", False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer \udcff", False),
    ],
)
def test_a_token_is_shown_whole(authorization: str, allowed: bool) -> None:
    access = ExplainAccess("0.0.0.0", 9091, TOKEN.encode())  # noqa: S104 - none is opened
    assert access.allows("picker.llm.svc", authorization) is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        *((host, True) for host in ("127.0.0.1:9091", "localhost:8080", "LOCALHOST", "[::1]:9091", "[::1]")),
        *(
            (host, False)
            for host in ("rebound.example:9091", "localhost.example", "", "[::1", "127.0.0.1.example")
        ),
    ],
)
def test_a_browsers_page_of_another_name_is_refused(host: str, allowed: bool) -> None:
    assert ExplainAccess("127.0.0.1", 9091).allows(host, "") is allowed


NOTHING = PodsFlags(None, None, "ns", POOL_GROUP, None, None)


def test_a_list_a_pool_or_labels() -> None:
    assert pods_of(replace(NOTHING, endpoints="1.2.3.4:80, 1.2.3.5:80")) == ("1.2.3.4:80", "1.2.3.5:80")
    assert pods_of(replace(NOTHING, pool="p")) == Pool("p", "ns")
    chosen = replace(NOTHING, selector="app.kubernetes.io/name=vllm,env=prod", ports="8000,8001")
    labels = {"app.kubernetes.io/name": "vllm", "env": "prod"}
    assert pods_of(chosen) == Selection("ns", labels, [8000, 8001])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (NOTHING, "give one of --endpoints, --pool-name and --endpoint-selector"),
        (replace(NOTHING, endpoints="1.2.3.4:80", pool="p"), "give one of --endpoints"),
        (replace(NOTHING, pool="p", selector="app=x"), "give one of --endpoints"),
        (replace(NOTHING, pool="p", group="example.com"), "--pool-group: 'example.com' is not known"),
        (replace(NOTHING, pool="p", ports="80"), "--endpoint-target-ports: these are of --endpoint-selector"),
        (replace(NOTHING, selector="", ports="80"), "--endpoint-selector: '' is not of the form"),
        (replace(NOTHING, selector="app", ports="80"), "--endpoint-selector: 'app' is not"),
        (replace(NOTHING, selector="app in (a,b)", ports="80"), "--endpoint-selector: 'app in (a,b)'"),
        (replace(NOTHING, selector="app=x"), "--endpoint-target-ports: '' is not"),
        (replace(NOTHING, selector="app=x", ports="0"), "--endpoint-target-ports: '0' is not"),
        (replace(NOTHING, selector="app=x", ports="80,"), "--endpoint-target-ports: '80,' is not"),
        (replace(NOTHING, selector="app=x", ports="65536"), "--endpoint-target-ports: '65536' is not"),
    ],
    ids=str,
)
def test_what_says_nothing_clear_is_refused(flags: PodsFlags, said: str) -> None:
    with pytest.raises(PickerConfigError) as refused:
        pods_of(flags)
    assert str(refused.value).startswith(said)
