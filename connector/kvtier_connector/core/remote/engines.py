"""What a store may run: to each engine the schemes of its URLs. Another engine is another line here."""

from collections.abc import Callable, Mapping
from typing import Final

from kvtier_common.redis_protocol import SCHEMES
from kvtier_connector.core.remote.mooncake.store import MOONCAKE_SCHEME, MooncakeStore
from kvtier_connector.core.remote.resp.store import RespStore
from kvtier_connector.core.remote.store import Store, StoreSettings
from kvtier_connector.core.remote.urls import url_error

ENGINES: Final[Mapping[str, Callable[[StoreSettings], Store]]] = {
    **dict.fromkeys(SCHEMES, RespStore.of),
    MOONCAKE_SCHEME: MooncakeStore.of,
}
"""By scheme; `kvtier_connector.config` names the same ones for those who must not import this."""


def store_of(settings: StoreSettings) -> Store:
    """Return the store that a URL names, without connecting to it.

    Raises SettingError: the URL is no engine's, or has a user or password, which is not repeated.
    """
    if "@" in settings.url:
        raise url_error("has a user or password; name them in the files of remote_credentials_path")
    scheme, separator, _ = settings.url.partition("://")
    engine = ENGINES.get(scheme) if separator else None
    if engine is None:
        schemes = ", ".join(f"{name}://" for name in ENGINES)
        raise url_error(f"got {settings.url!r}, must begin with {schemes}")
    return engine(settings)
