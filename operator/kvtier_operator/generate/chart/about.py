"""Chart.yaml: what the chart is, in which version."""

from typing import Any, Final

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.generate.notice import notice
from kvtier_operator.generate.yaml_text import yaml_text

CHART_NAME: Final = "tiered-prefix-cache"
OLDEST_KUBERNETES: Final = "1.31"
"""Helm refuses to install on an older one."""


def chart_document() -> dict[str, Any]:
    """The file as plain values."""
    return {
        "apiVersion": "v2",
        "name": CHART_NAME,
        "description": "A prefix cache beyond the GPU for vLLM, from one KVCacheTier resource",
        "type": "application",
        "version": KVTIER_VERSION,
        "appVersion": KVTIER_VERSION,
        "kubeVersion": f">={OLDEST_KUBERNETES}.0-0",
        "keywords": ["vllm", "kv-cache", "prefix-cache", "llm", "inference"],
    }


def chart_text() -> str:
    """The whole file."""
    return f"# {notice('operator/kvtier_operator/generate/chart/about.py')}\n{yaml_text(chart_document())}"
