"""Checks of devices and the engine's image."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, on, resource

from kvtier_connector.supported import TESTED_RELEASES
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS
from kvtier_operator.planning.checks.device import (
    backend_device,
    cpu_request,
    device_image,
    devices,
    engine_image,
    memory_request,
    node_devices,
    shared_claim,
)
from kvtier_operator.planning.checks.memory import memlock
from kvtier_operator.planning.images import ImageName, ImageSource
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.verdict import CheckResult, Outcome


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCache", "LMCacheMP"])
def test_every_backend_works_on_cuda(backend: str) -> None:
    says(verdict(backend_device, resource(backend=backend)), PASS, "Passed")


def test_native_refuses_the_cpu() -> None:
    result = verdict(backend_device, resource(backend="Native", engine={"device": "cpu"}))
    says(result, REJECT, "DeviceNotSupported", "KVTier")
    assert result.field == "spec.backend"


def test_lmcache_on_the_cpu_is_not_tested() -> None:
    says(
        verdict(backend_device, resource(backend="LMCache", engine={"device": "cpu"})),
        WARN,
        "DeviceNotTested",
    )


def test_kvtier_works_on_the_cpu() -> None:
    says(verdict(backend_device, resource(engine={"device": "cpu"})), PASS, "Passed")


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCache", "LMCacheMP"])
@pytest.mark.parametrize(
    ("device", "ends"),
    [("habana.ai/gaudi", True), ("google.com/tpu", True), ("gpu.intel.com/xe", False)],
)
def test_other_devices_are_not_tested(backend: str, device: str, ends: bool) -> None:
    one = resource(backend=backend, engine={"resources": {"limits": {device: 1}}})
    result = verdict(backend_device, one)
    says(result, WARN, "DeviceNotTested", f"not tested on {device}", "otherwise kvtier starts")
    assert ("offloading ends the engine" in result.message) is (ends and backend in {"KVTier", "Native"})
    given = check_input(one)
    words = " ".join(f"{line.what} {line.why}" for line in given.budget.memory) + memlock(given).message
    assert "CUDA" not in words
    assert "page-lock" not in words


@pytest.mark.parametrize("device", ["nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "amd.com/gpu", "run.ai/gpu"])
def test_gpus_and_shares_of_them_work(device: str) -> None:
    says(verdict(backend_device, resource(engine={"resources": {"limits": {device: 1}}})), PASS, "Passed")


def limits(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - further fields of the engine, as in YAML
    named = more.pop("limits")
    return {"resources": {"limits": named}, **more}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"tensorParallelSize": 2}, "2 nvidia.com/gpu"),
        (limits(limits={"nvidia.com/mig-3g.40gb": 1}), "1 nvidia.com/mig-3g.40gb, as asked for"),
        (limits(limits={"nvidia.com/mig-3g.40gb": 2}, dataParallelSize=2), "2 nvidia.com/mig"),
        (limits(limits={"amd.com/gpu": 2}, tensorParallelSize=2), "2 amd.com/gpu, as asked for"),
        (limits(limits={"rdma/ib": 1}), "1 rdma/ib, 1 nvidia.com/gpu"),
        ({"device": "cpu"}, "no devices"),
    ],
    ids=str,
)
def test_what_is_asked_for(engine: dict[str, Any], words: str) -> None:
    says(verdict(devices, resource(engine=engine)), PASS, "Passed", words)


def test_claims_are_not_counted() -> None:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "h100"}]
    one = resource(engine={"tensorParallelSize": 8, "resourceClaims": claims})
    says(verdict(devices, one), PASS, "Claimed", "gpus")


@pytest.mark.parametrize(
    ("claim", "limit", "outcome"),
    [
        ("gpus", "nvidia.com/gpu", WARN),
        ("gpus", "rdma/ib", PASS),
        ("nic", "nvidia.com/gpu", PASS),
        ("rdma-0", "nvidia.com/gpu", PASS),
    ],
)
def test_devices_beside_a_claim_of_others(claim: str, limit: str, outcome: object) -> None:
    claims = [{"name": claim, "resourceClaimTemplateName": "one"}]
    result = verdict(devices, resource(engine=limits(limits={limit: 1}, resourceClaims=claims)))
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "DevicesTwice", "1 nvidia.com/gpu beside the claims gpus", "kvtier asks for both")


@pytest.mark.parametrize("ranks", [{"tensorParallelSize": 2}, {"dataParallelSize": 2}], ids=str)
def test_fewer_devices_than_ranks(ranks: dict[str, int]) -> None:
    one = resource(engine=limits(limits={"habana.ai/gaudi": 1}, **ranks))
    says(verdict(devices, one), WARN, "DevicesBelowRanks", "1 habana.ai/gaudi for 2 ranks", "ask for 2")
    says(verdict(devices, one, on()), PASS, "NotLooked")


def test_slices_do_not_share_layers() -> None:
    one = resource(engine=limits(limits={"nvidia.com/mig-3g.40gb": 2}, tensorParallelSize=2))
    result = verdict(devices, one)
    says(result, WARN, "SlicesApart", "2 nvidia.com/mig-3g.40gb", "one MIG slice")
    assert result.field == "spec.engine.tensorParallelSize"


def test_a_slice_is_no_whole_gpu() -> None:
    one = resource(engine=limits(limits={"nvidia.com/mig-3g.40gb": 1}, gpu="h100"))
    result = verdict(devices, one)
    says(result, WARN, "SliceOfAGPU", "of h100", "spec.engine.gpuMemory in place of gpu")
    assert result.field == "spec.engine.gpu"


@pytest.mark.parametrize(
    ("name", "amount", "words"),
    [
        ("gpu", 1, "no resource of a pod: write cpu, memory, ephemeral-storage or a device"),
        ("nvidia.com/gpu", "500m", "500m of a device is no whole number; ask for 1 or more"),
        ("a.example/b/c", 1, "no name of a device: write its domain in lower case"),
        ("nvidia.com/gp\u00fc", 1, "no name of a device"),
        ("NVIDIA.com/gpu", 1, "no name of a device"),
        ("requests.nvidia.com/gpu", 1, "no name of a device"),
    ],
)
def test_what_kubernetes_would_refuse(name: str, amount: object, words: str) -> None:
    result = verdict(devices, resource(engine=limits(limits={name: amount, "cpu": "1"})))
    says(result, REJECT, "NoSuchResource", words)
    assert result.field == f"spec.engine.resources.limits.{name}"


@pytest.mark.parametrize(
    ("engine", "outcome"),
    [
        ({"tensorParallelSize": 8}, PASS),
        ({"tensorParallelSize": 8, "dataParallelSize": 2}, WARN),
        ({"tensorParallelSize": 8, "gpu": "gb200"}, WARN),
        ({"tensorParallelSize": 16, "gpu": "a100-40"}, PASS),
        (limits(limits={"nvidia.com/mig-1g.10gb": 56}), PASS),
    ],
    ids=str,
)
def test_more_gpus_than_a_node_has(engine: dict[str, Any], outcome: Outcome) -> None:
    one = resource(engine=engine)
    result = verdict(node_devices, one)
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "MoreThanANodeHas", "nvidia.com/gpu in one pod")
    says(verdict(node_devices, one, on()), PASS, "Passed")


@pytest.mark.parametrize(
    ("gpu", "device", "outcome"),
    [
        ("h100", "amd.com/gpu", REJECT),
        ("mi300x", "nvidia.com/gpu", REJECT),
        ("h100", "nvidia.com/gpu", PASS),
        ("h100", "vendor.example/shared-gpu", PASS),
        (None, "amd.com/gpu", PASS),
    ],
)
def test_a_gpu_of_another_maker(gpu: str | None, device: str, outcome: Outcome) -> None:
    result = verdict(devices, resource(engine={"gpu": gpu, **limits(limits={device: 2})}))
    assert result.outcome is outcome
    if outcome is REJECT:
        says(result, REJECT, "GPUOfAnotherMaker", f"{gpu} is", f"ask for {device}")
        assert result.field == "spec.engine.gpu"


def test_an_image_for_another_device() -> None:
    gaudi = limits(limits={"habana.ai/gaudi": 1})
    says(verdict(device_image, resource(engine=gaudi)), WARN, "ImageOfAnotherDevice", "habana.ai/gaudi")
    says(verdict(device_image, resource(engine={**gaudi, "image": "a/gaudi:1"})), PASS, "Passed")
    instinct = resource(engine={"gpu": "mi300x", "tensorParallelSize": 8})
    says(verdict(devices, instinct), PASS, "Passed", "8 amd.com/gpu")
    says(verdict(device_image, instinct), WARN, "ImageOfAnotherDevice", "amd.com/gpu")
    mig = limits(limits={"nvidia.com/mig-3g.40gb": 1})
    says(verdict(device_image, resource(engine=mig)), PASS, "Passed")


@pytest.mark.parametrize(
    ("claim", "replicas", "outcome"),
    [
        ({"resourceClaimTemplateName": "h100"}, 2, PASS),
        ({"resourceClaimName": "h100"}, 1, PASS),
        ({"resourceClaimName": "h100"}, 2, WARN),
    ],
    ids=str,
)
def test_a_claim_that_pods_share(claim: dict[str, str], replicas: int, outcome: object) -> None:
    result = verdict(
        shared_claim, resource(replicas=replicas, engine={"resourceClaims": [{"name": "a", **claim}]})
    )
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "ClaimShared", "ResourceClaim h100", "resourceClaimTemplateName")
        assert result.field == "spec.engine.resourceClaims[0].resourceClaimName"


@pytest.mark.parametrize(
    ("backend", "image", "outcome", "reason"),
    [
        ("KVTier", "vllm/vllm-openai:v0.33.0", PASS, "Passed"),
        ("KVTier", "docker.io/vllm/vllm-openai-cpu:latest", PASS, "Passed"),
        ("KVTier", "r.example/team/engine:0.1.0", PASS, "Passed"),
        ("KVTier", "r.example/team/vllm-openai:v0.31.1", WARN, "VersionNotTested"),
        ("KVTier", None, PASS, "Passed"),
        ("Native", "vllm/vllm-openai:v0.34.0", WARN, "VersionNotTested"),
        ("LMCache", "lmcache/vllm-openai:v0.5.6", PASS, "Passed"),
    ],
)
def test_what_the_name_of_an_image_tells(
    backend: str, image: str | None, outcome: Outcome, reason: str
) -> None:
    result = verdict(engine_image, resource(backend=backend, engine={"image": image} if image else {}))
    says(result, outcome, reason)
    assert result.field == "spec.engine.image"


def test_the_installations_own_image_is_looked_at() -> None:
    older = ImageSource(references={ImageName.VLLM: "r.example/vllm-openai:v0.31.0"})
    says(verdict(engine_image, resource(), Observed(images=older)), WARN, "VersionNotTested")


def test_a_local_run_takes_no_image() -> None:
    one = resource(engine={"image": "vllm/vllm-openai:v0.33.0"})
    says(verdict(engine_image, one, on()), PASS, "NotLooked")


def test_the_minors_are_those_of_the_connector() -> None:
    assert tuple(TESTED_RELEASES) == tuple(f"0.{minor}" for minor in KNOWN_MINORS)


def test_an_engine_on_the_cpu_that_asks_for_none() -> None:
    result = verdict(cpu_request, resource(engine={"device": "cpu"}))
    says(result, WARN, "NoCPURequest", "set it to the cores")
    assert result.field == "spec.engine.resources.requests.cpu"


def test_cores_asked_for_or_not_needed() -> None:
    for engine in (
        {"device": "cpu", "resources": {"requests": {"cpu": 4}}},
        {"device": "cpu", "resources": {"limits": {"cpu": "4"}}},
        {"device": "gpu"},
    ):
        says(verdict(cpu_request, resource(engine=engine)), PASS, "Passed")


@pytest.mark.parametrize(("limit", "is_low"), [("500m", True), (3, True), ("4", False), ("32", False)])
def test_a_limit_below_a_core_for_each_process_starves_gpus(limit: object, is_low: bool) -> None:
    # a front end, a scheduler and two ranks
    engine = {"tensorParallelSize": 2, "resources": {"limits": {"cpu": limit}}}
    result = verdict(cpu_request, resource(engine=engine))
    if not is_low:
        says(result, PASS, "Passed")
        return
    says(result, WARN, "CPULimitLow", "4 processes", "set 4 at least")
    assert result.field == "spec.engine.resources.limits.cpu"


def test_a_process_of_this_machine_asks_nobody() -> None:
    here = Observed(machine=Machine())
    says(verdict(cpu_request, resource(engine={"device": "cpu"}), here), PASS, "Passed")
    little = resource(engine={"resources": {"limits": {"memory": "1Gi"}}})
    says(verdict(memory_request, little, here), PASS, "Passed")


@pytest.mark.parametrize("where", ["requests", "limits"])
def test_memory_in_which_no_engine_starts(where: str) -> None:
    # a front end and two ranks: 11 GiB are counted
    def given(memory: str) -> CheckResult:
        engine = {"tensorParallelSize": 2, "resources": {where: {"memory": memory}}}
        return verdict(memory_request, resource(engine=engine))

    says(given("6Gi"), PASS, "Passed", "6 GiB for vLLM's processes")
    result = given("5Gi")
    says(result, WARN, "MemoryLow", "5 GiB for vLLM's own processes", "would count 11 GiB")
    assert result.field == f"spec.engine.resources.{where}.memory"
    says(verdict(memory_request, resource()), PASS, "Passed")
