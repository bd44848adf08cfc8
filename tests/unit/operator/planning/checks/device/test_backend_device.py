import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, resource

from kvtier_operator.planning.checks.device import backend_device
from kvtier_operator.planning.checks.memory import memlock


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
    says(result, WARN, "DeviceNotTested", f"not tested on {device}", "by itself kvtier starts")
    assert ("offloading ends the engine" in result.message) is (ends and backend in {"KVTier", "Native"})
    given = check_input(one)
    words = " ".join(f"{line.what} {line.why}" for line in given.budget.memory) + memlock(given).message
    assert "CUDA" not in words
    assert "page-lock" not in words


@pytest.mark.parametrize("device", ["nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "amd.com/gpu", "run.ai/gpu"])
def test_gpus_and_shares_of_them_work(device: str) -> None:
    says(verdict(backend_device, resource(engine={"resources": {"limits": {device: 1}}})), PASS, "Passed")
