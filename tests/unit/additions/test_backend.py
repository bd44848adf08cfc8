"""A new backend is one file, its member of the enum, and a resource whose objects are written down."""

import json
from typing import Final

from tests.unit.additions.copied import Copied

_BACKEND: Final = """
from kvtier_common.tier import Tier
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.backends.traits import BackendTraits, CpuTraits, DiskTraits, Folder, TierPlace
from kvtier_operator.planning.backends.parts import transfer_args
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.images import ImageName

TRAITS = BackendTraits(
    title="the toy",
    project="Toys",
    images=dict.fromkeys(Device, ImageName.VLLM),
    cpu=CpuTraits(place=TierPlace.ENGINE),
    disk=DiskTraits(folder=Folder.EMPTIED),
)


def plan(spec: Spec, geometry: Geometry) -> BackendPlan:
    tier_bytes = spec.tiers.cpu.capacity.bytes
    return BackendPlan(
        args=transfer_args({"kv_connector": "ToyConnector"}),
        bytes_per_rank={Tier.CPU: tier_bytes // spec.engine.tensor_parallel_size, Tier.DISK: 0},
        tokens_per_chunk=geometry.whole_block_tokens,
        tier_memory_bytes=tier_bytes,
    )
"""
_RESOURCE: Final = """
apiVersion: kvtier.dev/v1alpha1
kind: KVCacheTier
metadata: {name: toys}
spec:
  model: {name: Qwen/Qwen3-32B}
  backend: Toy
  replicas: 2
  tiers:
    cpu: {capacity: 100Gi, hugepages: {policy: Prefer}, memlock: {policy: Require}}
    disk: {capacity: 1Ti, volume: {hostPath: {path: /mnt}}}
  observability: {prometheusRule: true, dashboard: true}
"""


def test_three_files(copy: Copied) -> None:
    golden = "tests/unit/operator/golden/input/toy.yaml"
    copy.write("operator/kvtier_operator/planning/backends/toy.py", _BACKEND)
    enum = "operator/kvtier_operator/api/spec/tiers/__init__.py"
    copy.insert(enum, '    KVTIER = "KVTier"', '    TOY = "Toy", "for children"\n')
    copy.write(golden, _RESOURCE)
    report = json.loads(copy.kvtier("plan", "--no-hub", "-o", "json", "-f", golden))
    assert '{"kv_connector":"ToyConnector"}' in report["engine"]["args"]
    said = {check["name"]: check["message"] for check in report["checks"]}
    assert said["disk-restart"] == "backend Toy keeps to the capacity and is warm after a restart"
    assert said["memlock"].startswith("backend Toy pins its tier by itself on a GPU")
    assert "ToyConnector" in copy.kvtier("render", "-f", golden)
    assert "Toy (for children)" in copy.python(
        "-c", "from kvtier_operator.api.schema.crd import crd; print(crd())"
    )
    assert copy.changed() == {"operator/kvtier_operator/planning/backends/toy.py", enum, golden}
