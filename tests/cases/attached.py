"""KVCacheTiers with spec.attach, and pods of others, for tests."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.attach.plan import AttachPlan, plan_attach
from kvtier_operator.planning.observed import Observed

LABELS = {"app": "qwen"}
IMAGE = "kvtier/connector:test"


def attach_plan(
    *,
    cpu: str = "100Gi",
    container: str | None = None,
    labels: Mapping[str, str] = LABELS,
    name: str = "qwen",
    model: str | None = None,
    **tiers: Any,  # noqa: ANN401 - further tiers, and `cpu_fields` of the CPU tier, as in YAML
) -> AttachPlan:
    """What pods with these labels are given."""
    attach = {"podSelector": {"matchLabels": dict(labels)}} | ({"container": container} if container else {})
    spec: dict[str, Any] = {
        "attach": attach,
        "tiers": {"cpu": {"capacity": cpu} | tiers.pop("cpu_fields", {}), **tiers},
    }
    if model:
        spec["model"] = {"name": model}
    document = {
        "apiVersion": "kvtier.dev/v1alpha1",
        "kind": "KVCacheTier",
        "metadata": {"name": name},
        "spec": spec,
    }
    return plan_attach(parse_resource(document, name), Observed())


def vllm_pod(**container: Any) -> dict[str, Any]:  # noqa: ANN401 - further fields of the container, as in YAML
    """A pod of somebody's with a GPU and 64 GiB."""
    engine = {
        "name": "main",
        "image": "vllm/vllm-openai:v0.33.0",
        "command": ["/bin/bash", "-c", 'eval "exec vllm serve /mnt/models $@"', "--"],
        "args": ["--max-model-len=8192"],
        "resources": {
            "requests": {"cpu": "8", "memory": "64Gi"},
            "limits": {"memory": "64Gi", "nvidia.com/gpu": "1"},
        },
        **container,
    }
    return {"metadata": {"labels": dict(LABELS)}, "spec": {"containers": [engine]}}
