"""Checks of what a user passes through: reserved-arguments, reserved-environment."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.reserved_arguments import reserved_arguments
from kvtier_operator.planning.checks.reserved_environment import reserved_environment


@pytest.mark.parametrize(
    "argument",
    [
        "--kv-transfer-config",
        "--kv-offloading-size",
        "--kv-offloading-size=10",
        "--kv_offloading_size=10",
        "--kv-transfer-config.kv_role=kv_both",
        "--tensor-parallel-size",
        "-tp",
        "--max-model-len",
        "--no-enable-prefix-caching",
        "--gpu-memory-utilization=0.5",
        "--port",
        "--shutdown-timeout",
        "--served-model-name",
    ],
)
def test_arguments_that_kvtier_computes(argument: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--enforce-eager", argument]}))
    says(result, REJECT, "ReservedArgument", "remove it")
    assert result.field == "spec.engine.extraArgs[1]"


def test_offloading_size_would_overwrite_the_connector() -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--kv-offloading-size", "10"]}))
    assert "overwrite" in result.message


@pytest.mark.parametrize(
    "argument", ["--enforce-eager", "--max-num-seqs=4", "--kv-events-config={}", "32768"]
)
def test_other_arguments_pass(argument: str) -> None:
    says(verdict(reserved_arguments, resource(engine={"extraArgs": [argument]})), PASS, "Passed")


def test_events_of_the_users_own_would_overwrite_those_that_the_picker_follows() -> None:
    one = resource(
        engine={"extraArgs": ["--kv-events-config={}"]}, router={"flavor": "builtin", "kvEvents": True}
    )
    result = verdict(reserved_arguments, one)
    says(result, REJECT, "ReservedArgument", "spec.router.kvEvents makes it", "remove it")


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        ("KVTier", "PYTHONHASHSEED"),
        ("KVTier", "VLLM_CPU_KVCACHE_SPACE"),
        ("LMCache", "LMCACHE_MAX_LOCAL_CPU_SIZE"),
        ("LMCache", "LMCACHE_TRACK_USAGE"),  # the backend sets it
    ],
)
def test_variables_that_kvtier_computes(backend: str, name: str) -> None:
    one = resource(backend=backend, engine={"env": [{"name": name, "value": "1"}]})
    result = verdict(reserved_environment, one)
    says(result, REJECT, "ReservedVariable", name, "remove it")
    assert result.field == f"spec.engine.env[{name}]"


def test_lmcaches_other_variables_are_not_in_the_plan() -> None:
    one = resource(backend="LMCache", engine={"env": [{"name": "LMCACHE_LOG_LEVEL", "value": "DEBUG"}]})
    says(verdict(reserved_environment, one), WARN, "UnplannedVariable", "LMCACHE_LOG_LEVEL")


def test_other_variables_pass() -> None:
    one = resource(engine={"env": [{"name": "VLLM_LOGGING_LEVEL", "value": "DEBUG"}]})
    says(verdict(reserved_environment, one), PASS, "Passed")
