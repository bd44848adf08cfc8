import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.backend_device import backend_device


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
