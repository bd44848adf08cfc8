"""`kvtier picker`: serves the endpoint picker protocol until it is told to stop.

What it runs is loaded when it runs: help needs neither gRPC nor numba.
"""

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvtier_common.terminal.say import complain
from kvtier_scorer.config.contract import SERVED
from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.options import POOL_GROUP, Options, PodsFlags, explain_access, pods_of

if TYPE_CHECKING:
    from kvtier_scorer.config.settings import PickerSettings

_PORT = click.IntRange(1, 65535)


@click.command("picker", short_help="Choose the engine of each request of a gateway.")
@click.option(
    "--config-file", type=click.Path(path_type=Path), required=True, help="EndpointPickerConfig (YAML)."
)
@click.option("--endpoints", metavar="IP:PORT,...", help="The pods, where there is no cluster to ask.")
@click.option("--pool-name", help="InferencePool whose pods to pick from.")
@click.option(
    "--pool-namespace", envvar="NAMESPACE", default="default", show_default=True, help="Its namespace."
)
@click.option("--pool-group", default=POOL_GROUP, show_default=True, help="Its API group.")
@click.option(
    "--endpoint-selector", metavar="LABEL=VALUE,...", help="Labels of the pods, in place of an InferencePool."
)
@click.option("--endpoint-target-ports", metavar="PORT,...", help="Ports that those pods serve on.")
@click.option("--bind-address", default="", help="Listen at this address only.")
@click.option("--grpc-port", type=_PORT, default=9002, show_default=True, help="ext_proc, for gateways.")
@click.option(
    "--grpc-health-port", type=_PORT, default=9003, show_default=True, help="grpc.health.v1, for probes."
)
@click.option("--metrics-port", type=_PORT, default=9090, show_default=True, help="/metrics.")
@click.option(
    "--explain-address", metavar="IP:PORT|off", default="127.0.0.1:9091", show_default=True,
    help="/explain, which tells whether a prompt is cached; others than loopback need --explain-token-file.",
)  # fmt: skip
@click.option(
    "--explain-token-file", type=click.Path(path_type=Path),
    help="The bearer token that /explain wants to be shown.",
)  # fmt: skip
@click.option("--secure-serving", type=bool, default=True, show_default=True, help="ext_proc with TLS.")
@click.option(
    "--cert-path", type=click.Path(path_type=Path),
    help="Folder with tls.crt and tls.key, read again when they change; without it the picker makes its own.",
)  # fmt: skip
@click.option(
    "--grace-period", "grace_s", type=click.FloatRange(min=0), default=30.0, show_default=True,
    help="Seconds that requests under way may take once it is told to stop.",
)  # fmt: skip
@click.option(
    "--tell-endpoint", is_flag=True, help=f"Tell clients which engine answered, in the header {SERVED}.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
    show_default=True, help="debug tells of every pick.",
)  # fmt: skip
@click.option(
    "--log-format",
    type=click.Choice(["json", "plain"]),
    default="json",
    show_default=True,
    help="For programs or for people.",
)
def picker(  # noqa: PLR0913, PLR0917 - one parameter an option
    config_file: Path,
    endpoints: str | None,
    pool_name: str | None,
    pool_namespace: str,
    pool_group: str,
    endpoint_selector: str | None,
    endpoint_target_ports: str | None,
    bind_address: str,
    grpc_port: int,
    grpc_health_port: int,
    metrics_port: int,
    explain_address: str,
    explain_token_file: Path | None,
    secure_serving: bool,
    cert_path: Path | None,
    grace_s: float,
    tell_endpoint: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Choose, for each request of a gateway, the engine that holds most of its prompt and has room.

    A gateway asks over ext_proc (the Gateway API inference extension's endpoint picker protocol). Without
    --endpoints the pods are those of an InferencePool or those with some labels, in the cluster of the pod's
    service account or of KUBECONFIG.
    """
    # read when grpcio is loaded; what its C core says is not in our format, and clients can make it say much
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import uvloop  # noqa: PLC0415 - see the module

    from kvtier_scorer.picker.compose import serve  # noqa: PLC0415 - as above
    from kvtier_scorer.picker.observability.logs import LogFormat, set_up_logs  # noqa: PLC0415 - as above

    set_up_logs(LogFormat(log_format), log_level)
    flags = PodsFlags(
        endpoints, pool_name, pool_namespace, pool_group, endpoint_selector, endpoint_target_ports
    )
    try:
        options = Options(
            settings=_settings(config_file),
            pods=pods_of(flags),
            host=bind_address,
            ext_proc_port=grpc_port,
            health_port=grpc_health_port,
            http_port=metrics_port,
            explain=explain_access(explain_address, explain_token_file),
            tls=secure_serving,
            certificates=cert_path,
            grace_s=grace_s,
            tells_endpoint=tell_endpoint,
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            # what the start leaves behind lives as long as the process: never to be looked through again
            gc.freeze()
            runner.run(serve(options))
    except PickerConfigError as error:
        complain(f"kvtier picker: {error}")
        sys.exit(1)


def _settings(path: Path) -> "PickerSettings":
    from kvtier_scorer.config.parse import parse_settings  # noqa: PLC0415 - see the module

    try:
        return parse_settings(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PickerConfigError(f"--config-file: {path}: {reason}") from error
    except PickerConfigError as error:
        raise PickerConfigError(f"--config-file: {path}: {error}") from error
