"""Who may ask for explanations, which tell whether a prompt is cached: somebody's, word by word."""

import hmac
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from kvtier_scorer.config.errors import PickerConfigError

_LEAST_TOKEN: Final = 16
"""Characters; a shorter one can be guessed."""
_MOST_TOKEN: Final = 4096
_LAST_PORT: Final = 65535
_OFF: Final = "off"
_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class ExplainAccess:
    """Where explanations are given, and to whom.

    Attributes:
        host: Address to listen at.
        port: Port.
        token: What has to be shown; None where only this machine, or pod, can ask.
    """

    host: str
    port: int
    token: bytes | None = field(default=None, repr=False)

    def allows(self, host: str, authorization: str) -> bool:
        """Whether to answer a request with these headers.

        Without a token a name in `Host` is refused: a page in a browser on this machine can make its own name
        stand for loopback, and read the answer.
        """
        if self.token is None:
            return _is_own_host(host)
        shown = authorization[len(_BEARER) :].strip() if authorization.lower().startswith(_BEARER) else ""
        return hmac.compare_digest(shown.encode(errors="replace"), self.token)


def explain_access(address: str, token_file: Path | None) -> ExplainAccess | None:
    """The access that the command line asks for; None for nobody.

    Raises:
        PickerConfigError: The address is none, or others reach it and no token guards it.
    """
    if address == _OFF:
        return None
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = None
    if loopback is None or not (port.isascii() and port.isdecimal() and 0 < int(port) <= _LAST_PORT):
        raise PickerConfigError(
            f"--explain-address: {address!r} is not an ip:port, such as 127.0.0.1:9091 or [::1]:9091; "
            f"{_OFF} for no explanations"
        )
    token = None if token_file is None else _token(token_file)
    if token is None and not loopback:
        raise PickerConfigError(
            f"--explain-address {address}: whoever reaches it learns whose prompts are cached; give "
            "--explain-token-file, or a loopback address (kubectl port-forward reaches that)"
        )
    return ExplainAccess(host, int(port), token)


def _token(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_TOKEN + 1).strip()
    except OSError as error:
        raise PickerConfigError(f"--explain-token-file: {path}: {error.strerror}") from error
    if not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN:
        raise PickerConfigError(
            f"--explain-token-file: {path}: holds {len(token)} bytes; a token has {_LEAST_TOKEN} to "
            f"{_MOST_TOKEN}, such as `openssl rand -hex 32` writes"
        )
    return token


def _is_own_host(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.lower() == "localhost":
        return True
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
