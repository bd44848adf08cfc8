"""The folders of the node that a resource asks for."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.weights.model_source import SourceKind, model_source


def host_folders(spec: Spec) -> tuple[tuple[str, str], ...]:
    """Field and path of each."""
    source = model_source(spec.model)
    read = (("spec.model.source", source.place),) if source and source.kind is SourceKind.NODE else ()
    return (*written_host_folders(spec), *read)


def written_host_folders(spec: Spec) -> tuple[tuple[str, str], ...]:
    """Those that an engine writes to, and so has to be root for."""
    disk = spec.tiers.disk
    extra = disk.extra_volumes if disk else ()
    volumes = (
        ("spec.tiers.disk.volume", disk.volume if disk else None),
        *((f"spec.tiers.disk.extraVolumes[{index}]", each) for index, each in enumerate(extra)),
        ("spec.model.volume", spec.model.volume),
    )
    return tuple(
        (f"{field}.hostPath", volume.host_path.path)
        for field, volume in volumes
        if volume is not None and volume.host_path is not None
    )
