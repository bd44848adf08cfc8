"""Options of the commands that talk to a cluster, and how they reach it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kvtier_operator.cli.inputs.options import namespace_name

if TYPE_CHECKING:
    from kvtier_operator.cli.cluster.reader import Reader

_COMPLETE_S: Final = 3
"""A shell that waits for names waits no longer."""

namespace: Final = click.option(
    "-n", "--namespace", callback=namespace_name, help="By default the kubeconfig's, or the pod's own."
)
context: Final = click.option("--context", help="Of the kubeconfig; by default its current one.")


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
async def reading(context: str | None) -> AsyncIterator["Reader"]:
    """A reader of KUBECONFIG's cluster, or of the pod's own.

    Raises:
        NoClusterError: There is none.
    """
    from kvtier_common.kubernetes.client import Api  # noqa: PLC0415 - help needs no client
    from kvtier_common.kubernetes.connect import connection, usable  # noqa: PLC0415 - as above
    from kvtier_operator.cli.cluster.reader import Reader  # noqa: PLC0415 - as above

    configuration = await connection(context)
    with usable():
        api = Api(configuration, "kvtier")
    async with api:
        yield Reader(api)


def resource_names(context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    """Names of the namespace's resources, for a shell; none where they cannot be read soon."""
    import asyncio  # noqa: PLC0415 - as above

    from kvtier_common.errors import KvtierError  # noqa: PLC0415 - as above

    try:
        found = asyncio.run(_names(context.params.get("namespace"), context.params.get("context")))
    except (KvtierError, TimeoutError, ModuleNotFoundError):
        return []
    return [each for each in found if each.startswith(incomplete)]


async def _names(namespace: str | None, context: str | None) -> list[str]:
    import asyncio  # noqa: PLC0415 - as above

    from kvtier_common.kubernetes.connect import own_namespace  # noqa: PLC0415 - as above

    async with asyncio.timeout(_COMPLETE_S), reading(context) as reader:
        return await reader.names(namespace or own_namespace(context))


optional_name: Final = click.argument(
    "name", required=False, callback=resource_name, shell_complete=resource_names
)
"""A resource of a cluster, where files are given otherwise."""
