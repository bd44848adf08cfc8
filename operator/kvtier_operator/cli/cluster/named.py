"""What a command plans: KVCacheTiers of files, or the one of a cluster that is named."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.cli.cluster import options
from kvtier_operator.cli.inputs.load import Loaded, load


def named_or_loaded(
    name: str | None,
    paths: Sequence[str],
    *,
    namespace: str | None,
    context: str | None,
    model_config: str | None,
) -> Loaded:
    """The resource of that name, else those of the files.

    Args:
        name: Of a resource of the cluster.
        paths: As `load` takes them.
        namespace: Of the named one; by default that of the context.
        context: Of the kubeconfig.
        model_config: Where it is given, no ConfigMap of the cluster is asked for the model.

    Raises:
        click.UsageError: Both are given, or neither.
        InvalidInputError: A file cannot be read, or a resource is not valid.
        KvtierError: The cluster lacks the resource, or does not let it be read.
    """
    if (name is None) != bool(paths):
        raise click.UsageError("give either -f FILE or the NAME of a KVCacheTier of a cluster")
    if name is not None:
        import asyncio  # noqa: PLC0415 - files need none of it

        return asyncio.run(_named(name, namespace, context, with_config=model_config is None))
    if namespace is not None:
        raise click.UsageError("--namespace is of a NAME; a file says its own")
    return load(paths)


async def _named(name: str, namespace: str | None, context: str | None, *, with_config: bool) -> Loaded:
    from kvtier_common.kubernetes.connect import own_namespace  # noqa: PLC0415 - as above

    async with options.reading(context) as reader:
        place = namespace or own_namespace(context)
        source = f"{place}/{name}"
        resource = parse_resource(await reader.document(place, name), source)
        config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
        if with_config and (ref := resource.spec.model.config_ref) is not None:
            config_maps[place, ref.name] = "the cluster", await reader.config_map(place, ref.name)
    return Loaded(((source, resource),), config_maps)
