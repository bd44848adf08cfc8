"""`kvtier picker` serves the endpoint picker protocol until it is told to stop.

Beside kvtier's gateway `model-router` reads models, and `api-keys` a Secret's keys. What they run is loaded
when it runs: help needs neither gRPC nor numba.
"""

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kvtier_common.terminal.say import complain
from kvtier_scorer.config.contract import DEFAULT_MAX_BODY_BYTES, SERVED, uploads_bytes
from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.options import (
    POOL_GROUP,
    Options,
    PodsFlags,
    RouterOptions,
    explain_access,
    pods_of,
)

if TYPE_CHECKING:
    from kvtier_scorer.config.settings import PickerSettings

_PORT: Final = click.IntRange(1, 65535)
_BYTES: Final = click.IntRange(1024, 1 << 36)
_UPLOADS_BYTES: Final = uploads_bytes(DEFAULT_MAX_BODY_BYTES)
_GRACE_S: Final = click.FloatRange(min=0)


@click.command("picker", short_help="Choose the engine of each request of a gateway.")
@click.option(
    "--config-file", type=click.Path(path_type=Path), required=True, help="EndpointPickerConfig (YAML)."
)
@click.option("--endpoints", metavar="IP:PORT,...", help="The pods, where there is no cluster to ask.")
@click.option("--pool-name", "pool", help="InferencePool whose pods to pick from.")
@click.option(
    "--pool-namespace", "namespace", envvar="NAMESPACE", default="default", show_default=True,
    help="Its namespace.",
)  # fmt: skip
@click.option("--pool-group", "group", default=POOL_GROUP, show_default=True, help="Its API group.")
@click.option(
    "--endpoint-selector", "selector", metavar="LABEL=VALUE,...",
    help="Labels of the pods, in place of an InferencePool.",
)  # fmt: skip
@click.option("--endpoint-target-ports", "ports", metavar="PORT,...", help="Ports that those pods serve on.")
@click.option("--bind-address", "host", default="", help="Listen at this address only.")
@click.option(
    "--grpc-port", "ext_proc_port", type=_PORT, default=9002, show_default=True,
    help="ext_proc, for gateways.",
)  # fmt: skip
@click.option(
    "--grpc-health-port", "health_port", type=_PORT, default=9003, show_default=True,
    help="grpc.health.v1, for probes.",
)  # fmt: skip
@click.option("--metrics-port", "http_port", type=_PORT, default=9090, show_default=True, help="/metrics.")
@click.option(
    "--explain-address", metavar="IP:PORT|off", default="127.0.0.1:9091", show_default=True,
    help="/explain, which tells whether a prompt is cached; others than loopback need --explain-token-file.",
)  # fmt: skip
@click.option(
    "--explain-token-file", type=click.Path(path_type=Path),
    help="The bearer token that /explain wants to be shown.",
)  # fmt: skip
@click.option(
    "--secure-serving", "tls", type=bool, default=True, show_default=True, help="ext_proc with TLS."
)
@click.option(
    "--cert-path", "certificates", type=click.Path(path_type=Path),
    help="Folder with tls.crt and tls.key, read again when they change; without it the picker makes its own.",
)  # fmt: skip
@click.option(
    "--grace-period", "grace_s", type=_GRACE_S, default=30.0, show_default=True,
    help="Seconds that requests under way may take once it is told to stop.",
)  # fmt: skip
@click.option(
    "--tell-endpoint", "tells_endpoint", is_flag=True,
    help=f"Tell clients which engine answered, in the header {SERVED}.",
)  # fmt: skip
@click.option(
    "--tracing", type=bool, default=False, show_default=True,
    help="A span for each pick, as OpenTelemetry's variables say (OTEL_EXPORTER_OTLP_ENDPOINT).",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
    show_default=True, help="debug tells of every pick.",
)  # fmt: skip
@click.option(
    "--log-format", type=click.Choice(["json", "plain"]), default="json", show_default=True,
    help="For programs or for people.",
)  # fmt: skip
def picker(
    *,
    config_file: Path,
    explain_address: str,
    explain_token_file: Path | None,
    log_level: str,
    log_format: str,
    **others: Any,  # noqa: ANN401 - the fields of PodsFlags and Options
) -> None:
    """Choose, for each request of a gateway, the engine that holds most of its prompt and has room.

    A gateway asks over ext_proc (the Gateway API inference extension's endpoint picker protocol). Without
    --endpoints the pods are those of an InferencePool or those with some labels, in the cluster of the pod's
    service account or of KUBECONFIG.
    """
    _prepare_logs(log_format, log_level)
    import uvloop  # noqa: PLC0415 - see the module

    from kvtier_scorer.picker.compose import serve  # noqa: PLC0415 - see the module

    flags = PodsFlags(**{field.name: others.pop(field.name) for field in fields(PodsFlags)})
    try:
        options = Options(
            settings=_settings(config_file),
            pods=pods_of(flags),
            explain=explain_access(explain_address, explain_token_file),
            **others,
        )
        # what the start leaves behind lives as long as the process: never to be looked through again
        gc.freeze()
        uvloop.run(serve(options))
    except PickerConfigError as error:
        complain(f"kvtier picker: {error}")
        sys.exit(1)


@click.command("model-router")
@click.option(
    "--route", "routes", metavar="RESOURCE=MODEL", multiple=True, required=True,
    help="Another KVCacheTier, and a model of its that requests name.",
)  # fmt: skip
@click.option("--grpc-port", type=_PORT, default=9002, show_default=True, help="ext_proc, on loopback.")
@click.option("--grpc-health-port", type=_PORT, default=9003, show_default=True, help="grpc.health.v1.")
@click.option("--max-body-bytes", type=_BYTES, default=DEFAULT_MAX_BODY_BYTES, show_default=True)
@click.option("--total-body-bytes", type=_BYTES, default=_UPLOADS_BYTES, show_default=True)
@click.option("--grace-period", "grace_s", type=_GRACE_S, default=30.0, show_default=True)
def model_router(*, routes: Sequence[str], **others: Any) -> None:  # noqa: ANN401 - the fields of RouterOptions
    """Tell a gateway, over ext_proc, which resource a request is for by the model that its body names."""
    _prepare_logs("json", "info")
    import uvloop  # noqa: PLC0415 - see the module

    from kvtier_scorer.picker.model_router import serve  # noqa: PLC0415 - see the module

    by_model = {}
    for route in routes:
        resource, separator, model = route.partition("=")
        if not (resource and separator and model):
            complain(f"model-router: --route: {route!r} is not of the form RESOURCE=MODEL")
            sys.exit(1)
        by_model[model] = resource
    try:
        uvloop.run(serve(RouterOptions(by_model, **others)))
    except OSError as error:
        complain(f"model-router: cannot listen: {error}")
        sys.exit(1)


@click.command("api-keys")
@click.option(
    "--folder", type=click.Path(path_type=Path), required=True, help="A mounted Secret: an entry a client."
)
@click.option("--file", type=click.Path(path_type=Path), required=True, help="For Envoy; written anew.")
@click.option("--pass-on", "passes_on", is_flag=True, help="Leave the key in the request.")
def api_keys(*, folder: Path, file: Path, passes_on: bool) -> None:
    """Keep Envoy's list of API keys as a Secret has them."""
    _prepare_logs("json", "info")
    from kvtier_scorer.picker.api_keys import NoKeysError, keep  # noqa: PLC0415 - see the module

    try:
        keep(folder, file, passes_on=passes_on)
    except NoKeysError as error:
        complain(f"no API key: {error}")
        sys.exit(1)


def _prepare_logs(log_format: str, level: str) -> None:
    # read when grpcio is loaded; what its C core says is not in our format, and clients can make it say much
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from kvtier_scorer.picker.observability.logs import LogFormat, set_up_logs  # noqa: PLC0415 - see the module

    set_up_logs(LogFormat(log_format), level)


def _settings(path: Path) -> "PickerSettings":
    from kvtier_scorer.config.parse import parse_settings  # noqa: PLC0415 - see the module

    try:
        return parse_settings(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PickerConfigError(f"--config-file: {path}: {reason}") from error
    except PickerConfigError as error:
        raise PickerConfigError(f"--config-file: {path}: {error}") from error
