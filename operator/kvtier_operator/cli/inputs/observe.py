"""Observes what a plan depends on: the model's configuration, and for a local plan this machine."""

from pathlib import Path

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.cli.inputs.machine import this_machine
from kvtier_operator.cli.inputs.model_files import (
    ConfigMaps,
    ModelConfig,
    from_config_map,
    from_hub,
    from_path,
)
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.runtime.folders import state_folder, volume_folders


def observe(  # noqa: PLR0913 - facts of six kinds
    resource_: KVCacheTier,
    *,
    model_config: str | None = None,
    config_maps: ConfigMaps | None = None,
    local: bool = False,
    hub: bool = False,
    run_folder: Path | None = None,
    images: ImageSource | None = None,
) -> Observed:
    """What one plan depends on.

    Args:
        resource_: The resource to plan for.
        model_config: A config.json to read the model's shape from, or a folder with one.
        config_maps: ConfigMaps that the resource may name, as `load` has them.
        local: Whether the plan is for this machine, so that its memory, pages and limits count.
        hub: Whether Hugging Face may be asked for a config.json that neither the file system nor the
            catalogue has.
        run_folder: Folder of a local run; a new one when empty.
        images: Where images come from; where they are published when empty.

    Raises:
        InvalidInputError: A config.json cannot be read, or is not one.
    """
    model = resource_.spec.model
    found = ModelConfig()
    folder, field = _folder(model)
    if model_config is not None:
        found = from_path(Path(model_config), "")
    elif model.config_ref is not None:
        key = (resource_.metadata.namespace, model.config_ref.name)
        found = from_config_map(key, config_maps or {})
    elif model.geometry is None and folder.is_dir():
        found = from_path(folder, field)
    elif model.geometry is None and hub:
        found = from_hub(model)
    draft = _draft(resource_)
    return Observed(
        model_config=found.config,
        model_config_source=found.source,
        model_config_missing=found.missing,
        machine=_machine(resource_, run_folder) if local else None,
        weights_bytes=found.weights_bytes,
        images=images or ImageSource(),
        draft_config=draft.config,
        draft_config_source=draft.source,
        draft_weights_bytes=draft.weights_bytes,
    )


def _draft(resource_: KVCacheTier) -> ModelConfig:
    """The same of the model that drafts tokens, where it is a folder here and the resource does not tell.

    No Hub is asked for it: an operator does not either, and the two must not disagree.
    """
    model = resource_.spec.model
    if not resource_.spec.engine.extra_args or model.draft_geometry is not None:
        return ModelConfig()
    from kvtier_operator.planning.arguments.speculation import speculation  # noqa: PLC0415 - few resources need it

    asked = speculation(resource_.spec.engine.extra_args)
    if asked is None or asked.model is None or not Path(asked.model).is_dir():
        return ModelConfig()
    return from_path(Path(asked.model), "spec.engine.extraArgs")


def _folder(model: ModelSpec) -> tuple[Path, str]:
    """A folder of this machine that may have the model, and the field that names it."""
    from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source  # noqa: PLC0415 - loads the planner

    source = model_source(model)
    if source is not None and source.kind is SourceKind.NODE:
        return Path(source.place), "spec.model.source"
    return Path(model.name), "spec.model.name"


def _machine(resource_: KVCacheTier, run_folder: Path | None) -> Machine:
    """This machine, with the disk on which a run would have its tier, and what an earlier one left there."""
    disk = resource_.spec.tiers.disk
    if disk is not None and disk.volume.host_path is not None:
        from kvtier_operator.planning.backends.kvtier import FOLDER  # noqa: PLC0415 - loads the planner

        place = Path(disk.volume.host_path.path)
        return this_machine(place, (place / FOLDER,))
    if run_folder is None:
        return this_machine(state_folder())
    return this_machine(run_folder, volume_folders(run_folder))
