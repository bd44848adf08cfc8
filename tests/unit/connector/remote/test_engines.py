"""Which engine a store's URL names."""

import pytest

from kvtier_connector.config import REMOTE_SCHEMES
from kvtier_connector.core.remote.engines import ENGINES, store_of
from kvtier_connector.core.remote.store import StoreSettings
from kvtier_connector.errors import SettingError


def test_the_planner_knows_all_schemes() -> None:
    assert sorted(REMOTE_SCHEMES) == sorted(ENGINES)


@pytest.mark.parametrize(
    ("url", "servers"),
    [("redis://cache", ("cache:6379",)), ("valkeys://a:1,[::1]", ("a:1", "[::1]:6379"))],
)
def test_servers_of_a_url(url: str, servers: tuple[str, ...]) -> None:
    assert store_of(StoreSettings(url)).servers == servers


@pytest.mark.parametrize("url", ["", "cache:6379", "redis", "http://cache"])
def test_a_url_of_no_engine_is_refused_by_name(url: str) -> None:
    with pytest.raises(SettingError, match=r"^kv_connector_extra_config.remote_url: ") as refusal:
        store_of(StoreSettings(url))
    assert "must begin with redis://, rediss://, valkey://, valkeys://" in str(refusal.value)


@pytest.mark.parametrize("text", ["redis://:secret@cache", "rediss://user:secret@cache:1/0", "secret@cache"])
def test_a_password_is_no_part_of_a_url_and_of_no_message(text: str) -> None:
    with pytest.raises(SettingError) as refusal:
        store_of(StoreSettings(text))
    assert "secret" not in str(refusal.value)
    assert "remote_credentials_path" in str(refusal.value)
