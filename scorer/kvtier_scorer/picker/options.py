"""How a picker is started: its options, where its pods come from, and who may ask for explanations."""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvtier_scorer.config.model import PickerConfigError

if TYPE_CHECKING:
    from kvtier_scorer.config.settings import PickerSettings


_LEAST_TOKEN: Final = 16  # characters; a shorter one can be guessed
_MOST_TOKEN: Final = 4096
_LAST_PORT: Final = 65535
_OFF: Final = "off"
_BEARER: Final = "bearer "
POOL_GROUP: Final = "inference.networking.k8s.io"
_LABEL: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._/-]*)=(?P<value>[A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class ExplainAccess:
    """Where explanations are given, and to whom."""

    host: str
    port: int
    # what has to be shown; None where only this machine, or pod, can ask
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

    Raises PickerConfigError: the address is none, or others reach it and no token guards it.
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


@dataclass(frozen=True, slots=True)
class Pool:
    """An InferencePool of the cluster."""

    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Pods of the cluster by their labels, and what each of them serves on."""

    namespace: str
    labels: Mapping[str, str]
    ports: Sequence[int]


PodsOption = tuple[str, ...] | Pool | Selection
"""Where pods come from: addresses `ip:port`, the pool that selects them, or their labels."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a picker is started; `command.py` says what each is."""

    settings: "PickerSettings"
    pods: PodsOption
    host: str
    ext_proc_port: int
    health_port: int
    http_port: int
    explain: ExplainAccess | None  # who may ask for explanations, and where; None for nobody
    tls: bool
    certificates: Path | None
    grace_s: float
    tells_endpoint: bool
    tracing: bool  # whether picks are told to a collector that OpenTelemetry's variables name


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """How a model router is started; `routes` are other resources, by the model that requests name."""

    routes: Mapping[str, str]
    grpc_port: int
    grpc_health_port: int
    max_body_bytes: int
    total_body_bytes: int
    grace_s: float


@dataclass(frozen=True, slots=True)
class PodsFlags:
    """What the command line says of pods."""

    endpoints: str | None
    pool: str | None
    namespace: str
    group: str
    selector: str | None
    ports: str | None


def pods_of(flags: PodsFlags) -> PodsOption:
    """Where pods come from: exactly one of a list, a pool and labels.

    Raises PickerConfigError: several, or none, or one that this picker does not know.
    """
    sources = (flags.endpoints, flags.pool, flags.selector)
    if sum(source is not None for source in sources) != 1:
        raise PickerConfigError(
            "give one of --endpoints, --pool-name and --endpoint-selector: where the pods come from"
        )
    if flags.ports is not None and flags.selector is None:
        raise PickerConfigError(
            "--endpoint-target-ports: these are of --endpoint-selector, which is not given"
        )
    if flags.selector is not None:
        return Selection(flags.namespace, _labels(flags.selector), _ports(flags.ports or ""))
    if flags.pool is None:
        return tuple(filter(None, map(str.strip, (flags.endpoints or "").split(","))))
    if flags.group != POOL_GROUP:
        raise PickerConfigError(
            f"--pool-group: {flags.group!r} is not known, InferencePools are of {POOL_GROUP}"
        )
    return Pool(flags.pool, flags.namespace)


def _labels(text: str) -> Mapping[str, str]:
    matches = [_LABEL.fullmatch(label) for label in text.split(",")]
    labels = {match["name"]: match["value"] for match in matches if match}
    if len(labels) < len(matches):
        raise PickerConfigError(f"--endpoint-selector: {text!r} is not of the form app=vllm,env=prod")
    return labels


def _ports(text: str) -> Sequence[int]:
    ports = [int(port) for port in text.split(",") if port.isascii() and port.isdecimal()]
    if len(ports) <= text.count(",") or not all(0 < port <= _LAST_PORT for port in ports):
        raise PickerConfigError(f"--endpoint-target-ports: {text!r} is not of the form 8000,8001")
    return ports
