"""What an engine is given to keep what matters: prefixes as files, a control socket's folder, middleware."""

import json
from collections.abc import Mapping
from typing import Any, Final

from kvtier_connector.payload import (
    CONTROL_MOUNT,
    CONTROL_PATH,
    CONTROL_VARIABLE,
    MIDDLEWARE,
    PREFIXES_VARIABLE,
    PREFIXES_WITHIN_VARIABLE,
)
from kvtier_operator.api.formats import seconds_of
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.kept import Prefix
from kvtier_operator.api.spec.router import HintsPolicy
from kvtier_operator.api.spec.tiers import Ability
from kvtier_operator.planning.base.container_parts import ConfigFile, Mount
from kvtier_operator.planning.base.kept import warm_start_s
from kvtier_operator.planning.base.names import Names

PREFIXES_FOLDER: Final = "/etc/kvtier/prefixes"
_USUAL_WITHIN: Final = "2m"
_USUAL_RETAIN: Final = "1h"
_CONTROL_SIZE: Final = "1Mi"


def prefixes_within_s(spec: Spec) -> int:
    """How long a start may take for prefixes; 0 without any."""
    return seconds_of(spec.prefixes_within or _USUAL_WITHIN) if spec.prefixes else 0


def kept_start_s(spec: Spec) -> int:
    """Seconds that a start may take more until the engine is ready."""
    return prefixes_within_s(spec) + warm_start_s(spec)


def prefix_files(spec: Spec) -> tuple[ConfigFile, ...]:
    """One for each prefix that the resource has whole, as kvtier_connector.serve reads it."""
    return tuple(
        ConfigFile(f"{PREFIXES_FOLDER}/{_file_of(prefix)}", json.dumps(_described(prefix)))
        for prefix in spec.prefixes
        if prefix.from_config_map is None
    )


def _described(prefix: Prefix) -> dict[str, Any]:
    retain_s = seconds_of(prefix.retain or _USUAL_RETAIN)
    content = {"tokens": prefix.tokens} if prefix.text is None else {"text": prefix.text}
    return {"name": prefix.name, "retain_s": retain_s, **content}


def _file_of(prefix: Prefix) -> str:
    """In the folder; engines read what ends so."""
    return f"{prefix.name}.json"


def engine_folders(resource: KVCacheTier) -> tuple[Mount, ...]:
    """Folders that the engine alone sees: of its control socket, and of the prefixes."""
    spec = resource.spec
    if Ability.KEEPS not in spec.backend.abilities:
        return ()
    control = Mount("control", CONTROL_MOUNT, {"emptyDir": {"medium": "Memory", "sizeLimit": _CONTROL_SIZE}})
    if not spec.prefixes:
        return (control,)
    own = {"configMap": {"name": Names.of_resource(resource).prefixes}}
    sources: list[Mapping[str, Any]] = [own] if prefix_files(spec) else []
    for prefix in spec.prefixes:
        if (ref := prefix.from_config_map) is not None:
            items = [{"key": ref.key, "path": _file_of(prefix)}]
            sources.append({"configMap": {"name": ref.name, "items": items}})
    return (control, Mount("prefixes", PREFIXES_FOLDER, {"projected": {"sources": sources}}, read_only=True))


def middleware_args(spec: Spec) -> tuple[str, ...]:
    """What stands before the engine's API where prefixes are computed, or a hint may ask to load blocks.

    vLLM takes the argument several times (entrypoints/openai/cli_args.py): one of the resource's own stays.
    What of a prefix was cached vLLM tells only with the other.
    """
    wanted = spec.prefixes or spec.router.hints is not HintsPolicy.REFUSE
    if not wanted or Ability.KEEPS not in spec.backend.abilities:
        return ()
    details = ("--enable-prompt-tokens-details",) if spec.prefixes else ()
    return ("--middleware", MIDDLEWARE, *details)


def kept_env(spec: Spec) -> Mapping[str, str]:
    """Where the engine finds them."""
    if Ability.KEEPS not in spec.backend.abilities:
        return {}
    env = {CONTROL_VARIABLE: CONTROL_PATH}
    if spec.prefixes:
        env |= {
            PREFIXES_VARIABLE: PREFIXES_FOLDER,
            PREFIXES_WITHIN_VARIABLE: str(prefixes_within_s(spec)),
        }
    return env


def prefix_notes(spec: Spec) -> tuple[str, ...]:
    """What somebody has to make before pods start."""
    refs = [prefix.from_config_map for prefix in spec.prefixes if prefix.from_config_map]
    if not refs:
        return ()
    wanted = ", ".join(dict.fromkeys(f"{ref.name} ({ref.key})" for ref in refs))
    return (f"pods wait in ContainerCreating for these ConfigMaps of prefixes: {wanted}",)
