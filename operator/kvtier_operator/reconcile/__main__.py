"""`python -m kvtier_operator.reconcile`: runs the operator until it is told to stop.

What it runs is loaded when it runs: help needs neither Kopf nor a client.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from typing import Final

import click
from click.core import ParameterSource

from kvtier_common.errors import KvtierError
from kvtier_common.terminal.say import complain
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.extras import missing_package
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S, LEAST_LEASE_S, MOST_LEASE_S

_LOG: Final = logging.getLogger(__name__)
_PORT: Final = click.IntRange(1, 65535)
_VALUES: Final[Mapping[str, str]] = {
    "KVTIER_POLICY": "operator.policy",
    "KVTIER_MODEL_CONFIGS": "operator.modelConfigs",
    "KVTIER_IMAGES": "images",
    "KVTIER_IMAGE_REGISTRY": "global.imageRegistry",
    "KVTIER_IMAGE_PULL_SECRETS": "global.imagePullSecrets",
    "KVTIER_REPOSITORY": "image.repository",
}
"""The chart's value that each variable comes from."""


@click.command(context_settings={"auto_envvar_prefix": "KVTIER", "help_option_names": ["-h", "--help"]})
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    help="Serve this namespace only; repeatable. None: all. KVTIER_NAMESPACES, separated by commas.",
)
@click.option(
    "--metrics-port", type=_PORT, default=8080, show_default=True, help="Prometheus metrics at /metrics."
)
@click.option(
    "--health-port",
    type=_PORT,
    default=8081,
    show_default=True,
    help="Liveness at /healthz, readiness at /readyz.",
)
@click.option(
    "--log-format",
    type=click.Choice(["plain", "json"]),
    default="plain",
    show_default=True,
    help="For people or for programs.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Least severe messages that are logged.",
)
@click.option("--image-registry", help="Takes the place of each image's own registry: HOST[:PORT][/PATH].")
@click.option(
    "--repository", help="kvtier's own image in this cluster, without its tag; with a host as it is."
)
@click.option(
    "--image",
    "images",
    multiple=True,
    help="NAME=REFERENCE, an image in place of the published one; repeatable. KVTIER_IMAGES, by commas.",
)
@click.option(
    "--image-pull-secret",
    "image_pull_secrets",
    multiple=True,
    help="A Secret that pods pull with, in their namespace; repeatable. KVTIER_IMAGE_PULL_SECRETS by commas.",
)
@click.option("--policy", help='What resources may ask for, as JSON: {"hostPath": "deny"}. KVTIER_POLICY.')
@click.option(
    "--model-configs",
    type=click.Choice(["none", "hub"]),
    default="none",
    show_default=True,
    help="Where to ask for the configuration of a model that the catalogue lacks: nowhere, or Hugging Face.",
)
@click.option(
    "--lease",
    help="Reconcile only while holding the Lease of this name in its own namespace, for several operators, "
    "of which one works. None: no election.",
)
@click.option(
    "--lease-seconds",
    type=click.IntRange(LEAST_LEASE_S, MOST_LEASE_S),
    default=DEFAULT_LEASE_S,
    show_default=True,
    help="How long the Lease outlives an operator that ends without giving it up.",
)
@click.pass_context
def main(  # noqa: PLR0913, PLR0917 - one parameter an option
    context: click.Context,
    namespaces: tuple[str, ...],
    metrics_port: int,
    health_port: int,
    log_format: str,
    log_level: str,
    image_registry: str | None,
    repository: str | None,
    images: tuple[str, ...],
    image_pull_secrets: tuple[str, ...],
    policy: str | None,
    model_configs: str,
    lease: str | None,
    lease_seconds: int,
) -> None:
    """Turn KVCacheTiers into running engines and pickers.

    The cluster is that of the pod's service account, else that of KUBECONFIG.
    """
    try:
        from kvtier_operator.planning.base.owner_policy import policy_of_text  # noqa: PLC0415 - see the module
        from kvtier_operator.planning.images import image_source  # noqa: PLC0415 - as above
        from kvtier_operator.reconcile.observability import set_up_logs  # noqa: PLC0415 - as above
        from kvtier_operator.reconcile.serve import serve  # noqa: PLC0415 - as above
        from kvtier_operator.reconcile.settings import Options  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        if (line := missing_package(error, "operator")) is None:
            raise
        complain(f"kvtier-operator: {line}")
        sys.exit(1)
    set_up_logs(log_format, log_level)
    try:
        source = image_source(
            registry=image_registry,
            repository=repository,
            references=_split(images),
            pull_secrets=_split(image_pull_secrets),
        )
        # click takes an empty variable for none, and no limit at all for an empty one would be a surprise
        limits = os.environ.get("KVTIER_POLICY", "{}") if policy is None else policy
        options = Options(
            _split(namespaces),
            source,
            policy_of_text(limits, "--policy"),
            lease=lease or None,
            lease_s=lease_seconds,
            asks_hub=model_configs == "hub",
        )
        asyncio.run(serve(options, metrics_port, health_port))
    except asyncio.CancelledError:
        _LOG.info("stopped")
    except InvalidInputError as error:
        complain(f"kvtier-operator: {name_option_as_set(context, error)}")
        sys.exit(1)
    except (KvtierError, OSError) as error:
        complain(f"kvtier-operator: {error}")
        sys.exit(1)


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    """Values of an option that may be repeated, and that has commas in the environment."""
    return tuple(name for value in values for name in value.replace(",", " ").split())


def name_option_as_set(context: click.Context, error: InvalidInputError) -> InvalidInputError:
    """The same error, naming the environment variable where the option was set by one."""
    for parameter in context.command.params:
        name = parameter.name or ""
        variable = f"{context.auto_envvar_prefix}_{name.upper()}"
        of_environment = (
            variable in os.environ and context.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        )
        if error.source in parameter.opts and of_environment:
            value = f" (in the chart {_VALUES[variable]})" if variable in _VALUES else ""
            return InvalidInputError(f"{variable}{value}", *error.problems)
    return error


if __name__ == "__main__":
    main()
