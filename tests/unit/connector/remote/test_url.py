"""What `remote_url` may be."""

import pytest

from kvtier_connector.core.remote.resp.url import RespUrl, parse_url
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import SettingError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("redis://cache", RespUrl((Address("cache", 6379),), tls=False, database=0)),
        ("valkeys://cache.example:7000/", RespUrl((Address("cache.example", 7000),), tls=True, database=0)),
        ("rediss://[fd00::1]:7000/3", RespUrl((Address("fd00::1", 7000),), tls=True, database=3)),
        (
            "valkey://a:1,[::1],c",
            RespUrl((Address("a", 1), Address("::1", 6379), Address("c", 6379)), tls=False, database=0),
        ),
    ],
)
def test_servers_and_their_ports(text: str, url: RespUrl) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("redis://", "must name a host"),
        ("redis://:6379", "must name a host"),
        ("redis://a,,b", "must name a host"),
        ("redis://fd00::1", "must name a host"),
        ("redis://a b", "must name a host"),
        ("redis://a:0", "a port from 1 to 65535 behind a:"),
        ("redis://a:port", "a port from 1 to 65535"),
        ("redis://a:70000", "a port from 1 to 65535"),
        ("redis://a/one", "a database's number"),
        ("redis://a/0?timeout=1", "a database's number"),
        ("redis://a,b/1", "a cluster has database 0 alone"),
    ],
)
def test_what_is_no_url_of_servers_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(SettingError, match=r"^kv_connector_extra_config.remote_url: ") as refusal:
        parse_url(text)
    assert why in str(refusal.value)
