"""ConfigMap with the engine's files."""

from pathlib import PurePosixPath
from typing import Any

from kvtier_operator.planning.base.container_parts import ConfigFile
from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.plan import Plan


def engine_config_map(plan: Plan) -> dict[str, Any] | None:
    """One key a file; None where the backend needs no file."""
    if not plan.engine.files:
        return None
    names = Names.of(plan)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(names.engine, Component.ENGINE),
        "data": {file_key(file): file.content for file in plan.engine.files},
    }


def file_key(file: ConfigFile) -> str:
    """The ConfigMap's key of a file: its base name."""
    return PurePosixPath(file.path).name


def files_hash(plan: Plan) -> str:
    """Hash of everything in the ConfigMap."""
    return content_hash(*(part for file in plan.engine.files for part in (file.path, file.content)))
