"""Checks of the engine's devices: devices, device-image, shared-claim."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_operator.planning.checks.device import device_image, devices, shared_claim


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


def test_an_image_for_another_device() -> None:
    gaudi = limits(limits={"habana.ai/gaudi": 1})
    says(verdict(device_image, resource(engine=gaudi)), WARN, "ImageOfAnotherDevice", "habana.ai/gaudi")
    says(verdict(device_image, resource(engine={**gaudi, "image": "a/gaudi:1"})), PASS, "Passed")
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
