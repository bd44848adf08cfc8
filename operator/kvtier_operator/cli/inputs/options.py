"""Options that several commands take alike."""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from kvtier_operator.cli.cluster.reader import Reader


_FILE: Final = click.Path(allow_dash=True)
"""Read where it is opened; a shell completes it."""


def _filenames(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "-f",
        "--filename",
        "paths",
        type=_FILE,
        multiple=True,
        required=required,
        help="A KVCacheTier file, a folder of them, an https:// address, or - for standard input; may be "
        "repeated.",
    )


filenames: Final = _filenames(required=True)
optional_filenames: Final = _filenames(required=False)
filename: Final = click.option(
    "-f",
    "--filename",
    "path",
    type=_FILE,
    required=True,
    help="A KVCacheTier file, its https:// address, or - for standard input.",
)
model_config: Final = click.option(
    "--model-config",
    type=click.Path(),
    help="The model's config.json or params.json, or a folder with it, for a model kvtier lacks.",
)
hub: Final = click.option(
    "--hub/--no-hub",
    default=False,
    show_default=True,
    help="Ask Hugging Face for a config.json that nothing else has; for operators with modelConfigs: hub.",
)

policy: Final = click.option(
    "--policy",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="What the cluster's owner lets resources ask for: operator.policy as YAML, or the chart's values.",
)


def images(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say where images come from, which the command gets as one `images`."""

    @click.option(
        "--image-registry",
        metavar="REGISTRY",
        help="A mirror of all images, in place of each one's own registry: HOST[:PORT][/PATH].",
    )
    @click.option(
        "--kvtier-registry",
        metavar="REGISTRY",
        help="Where `make publish` pushed kvtier's own images; the others come from their own registries.",
    )
    @click.option(
        "--image",
        "references",
        metavar="NAME=REFERENCE",
        multiple=True,
        help="An image in place of the published one, such as vllm=...@sha256:...; may be repeated.",
    )
    @click.option(
        "--image-pull-secret",
        "pull_secrets",
        metavar="NAME",
        multiple=True,
        help="A Secret that pods pull with, after the resource's own; may be repeated.",
    )
    @functools.wraps(command)
    def with_images(
        *,
        image_registry: str | None,
        kvtier_registry: str | None,
        references: tuple[str, ...],
        pull_secrets: tuple[str, ...],
        **values: Any,  # noqa: ANN401 - the command's own
    ) -> None:
        from kvtier_operator.planning.images import image_source  # noqa: PLC0415 - help needs none of it

        source = image_source(
            registry=image_registry,
            own_registry=kvtier_registry,
            references=references,
            pull_secrets=pull_secrets,
        )
        command(images=source, **values)

    return with_images


def namespace_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that names a namespace: refuses what no cluster could have."""
    if value is None:
        return None
    from pydantic import ValidationError  # noqa: PLC0415 - takes a while, and help has no values

    from kvtier_operator.api.resource import Metadata  # noqa: PLC0415 - as above

    try:
        Metadata(name="any", namespace=value)
    except ValidationError as error:
        message = f"{value!r} is not a namespace: a-z, 0-9 and -, at most 63 characters"
        raise click.BadParameter(message) from error
    return value


_COMPLETE_S: Final = 3
"""A shell that waits for names waits no longer."""

namespace: Final = click.option(
    "-n", "--namespace", callback=namespace_name, help="By default the kubeconfig's, or the pod's own."
)
all_namespaces: Final = click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces."
)
interval: Final = click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=1),
    default=5.0,
    show_default=True,
    help="Seconds from one look to the next.",
)


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Which cluster is asked, and as whom; by default KUBECONFIG's, or the pod's own."""

    kubeconfig: str | None = None  # a file in place of those that KUBECONFIG names
    context: str | None = None  # of the kubeconfig; its current one where it is None


def cluster(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which cluster is asked, which the command gets as one `cluster`."""

    @click.option(
        "--kubeconfig", type=click.Path(), metavar="FILE", help="In place of KUBECONFIG and ~/.kube/config."
    )
    @click.option("--context", help="Of the kubeconfig; by default its current one.")
    @functools.wraps(command)
    def with_cluster(
        *,
        kubeconfig: str | None,
        context: str | None,
        **values: Any,  # noqa: ANN401 - the command's own
    ) -> None:
        command(cluster=ClusterChoice(kubeconfig, context), **values)

    return with_cluster


def resource_name(_context: click.Context, _argument: click.Parameter, value: str | None) -> str | None:
    """Callback of an argument that names a resource: refuses what none can be called."""
    if value is None:
        return None
    from kvtier_operator.api.resource import NAME_MESSAGE, NAME_PATTERN  # noqa: PLC0415 - help has no values

    if not NAME_PATTERN.fullmatch(value):
        file = f"; for the file: -f {value}" if Path(value).exists() else ""
        raise click.BadParameter(f"{value!r} is no KVCacheTier's: {NAME_MESSAGE}{file}")
    return value


@asynccontextmanager
async def open_cluster(choice: ClusterChoice, namespace: str | None) -> AsyncIterator[tuple["Reader", str]]:
    """A reader of a cluster, and the namespace; by default the context's, or the pod's own."""
    from kvtier_common.kubernetes.client import Api  # noqa: PLC0415 - help needs no client
    from kvtier_common.kubernetes.connect import connection, own_namespace, translate_kubeconfig_errors  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.reader import Reader  # noqa: PLC0415 - as above

    configuration = await connection(choice.context, choice.kubeconfig)
    with translate_kubeconfig_errors(choice.kubeconfig):
        api = Api(configuration, "kvtier")
    async with api:
        yield Reader(api), namespace or own_namespace(choice.context, choice.kubeconfig)


def resource_names(context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    """Names of the namespace's resources, for a shell; none where they cannot be read soon."""
    import asyncio  # noqa: PLC0415 - as above

    from kvtier_common.errors import KvtierError  # noqa: PLC0415 - as above

    try:
        choice = ClusterChoice(context.params.get("kubeconfig"), context.params.get("context"))
        names = asyncio.run(_names(context.params.get("namespace"), choice))
    except (KvtierError, TimeoutError, ModuleNotFoundError):
        return []
    return [name for name in names if name.startswith(incomplete)]


async def _names(namespace: str | None, choice: ClusterChoice) -> list[str]:
    import asyncio  # noqa: PLC0415 - as above

    async with asyncio.timeout(_COMPLETE_S), open_cluster(choice, namespace) as (reader, place):
        return await reader.names(place)


optional_name: Final = click.argument(
    "name", required=False, callback=resource_name, shell_complete=resource_names
)
"""A resource of a cluster, where files are given otherwise."""


def size_bytes(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    """Callback of an option that is a size: its bytes."""
    if value is None:
        return None
    from kvtier_operator.api.quantity import ByteQuantity  # noqa: PLC0415 - help has no values

    try:
        return ByteQuantity(value).bytes
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
