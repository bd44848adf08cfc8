"""quantization.json: the methods of quantisation that vLLM has, and what it asks of some."""

import json
from importlib.metadata import PackageNotFoundError
from typing import Final

from kvtier_operator.generate.engine_data.architectures import PACKAGES
from kvtier_operator.generate.engine_data.upstream import quantization_methods, sources

QUANTIZATION: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/quantization.json"


def model_quantization() -> str | None:
    """The whole file; None where vLLM is not installed."""
    try:
        methods = list(quantization_methods())
        generated_from = sources(*PACKAGES)
    except (PackageNotFoundError, ImportError):
        return None
    written = {
        "generated_from": generated_from,
        "methods": sorted(method.name for method in methods),
        "deprecated": sorted(method.name for method in methods if method.deprecated),
        "bfloat16_alone": sorted(method.name for method in methods if method.dtypes == ("bfloat16",)),
    }
    return f"{json.dumps(written, indent=2)}\n"
