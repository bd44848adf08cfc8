"""Checks of what a user passes through: reserved-arguments, reserved-environment."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.arguments import reserved_arguments
from kvtier_operator.planning.checks.environment import reserved_environment


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
        "--device-memory-utilization",
        "-dcp",
    ],
)
def test_arguments_that_kvtier_computes(argument: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--enforce-eager", argument]}))
    says(result, REJECT, "ReservedArgument", "remove it")
    assert result.field == "spec.engine.extraArgs[1]"


@pytest.mark.parametrize("argument", ["-dcp=2", "-pcp=2", "-pp=2", "--pipeline-par=2"])
def test_other_parallelism_is_not_planned(argument: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": [argument]}))
    says(result, REJECT, "ReservedArgument", "tensor and data parallelism only", "remove it")
    assert "kvtier's to set" not in result.message


def test_all_of_them_are_named_at_once() -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--port=1", "-v", "-tp=2"]}))
    says(result, REJECT, "ReservedArgument", "--port", "spec.engine.extraArgs[2]: -tp")
    assert result.field == "spec.engine.extraArgs[0]"
    env = [
        {"name": "PYTHONHASHSEED", "value": "1"},
        {"name": "A"},
        {"name": "LMCACHE_LOCAL_CPU", "value": "1"},
    ]
    result = verdict(reserved_environment, resource(engine={"env": env}))
    says(result, REJECT, "ReservedVariable", "PYTHONHASHSEED", "spec.engine.env[LMCACHE_LOCAL_CPU]: LMCACHE")
    assert result.field == "spec.engine.env[PYTHONHASHSEED]"


@pytest.mark.parametrize(
    ("argument", "option"),
    [
        ("--max-model-le", "--max-model-len"),
        ("--max_model_le=4096", "--max-model-len"),
        ("--kv-transfer-conf.kv_role=kv_both", "--kv-transfer-config"),
        ("--no-enable-prefix", "--no-enable-prefix-caching"),
        ("-t=2", "-tp"),
        ("-O--kv-transfer-config.kv_role=kv_both", "--kv-transfer-config"),
        ("-O=--kv-transfer-conf.kv_role=kv_both", "--kv-transfer-config"),
    ],
)
def test_names_that_are_cut_short(argument: str, option: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": [argument, "2"]}))
    says(result, REJECT, "ReservedArgument", f"vLLM reads it as {option}", "remove it")


@pytest.mark.parametrize("argument", ["--config", "--config=more.yaml", "--conf"])
def test_arguments_in_a_file_would_be_seen_by_no_check(argument: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--seed=1", argument, "more.yaml"]}))
    says(result, REJECT, "ArgumentsInFile", "write each of them into spec.engine.extraArgs", "remove it")
    assert result.field == "spec.engine.extraArgs[1]"


def test_a_file_hides_no_other_argument() -> None:
    words = ["--port=1", "--config", "more.yaml", "-tp", "2"]
    result = verdict(reserved_arguments, resource(engine={"extraArgs": words}))
    says(result, REJECT, "ArgumentsInFile", "--port", "extraArgs[1]: --config", "extraArgs[3]: -tp")
    assert result.field == "spec.engine.extraArgs[0]"


def test_offloading_size_would_overwrite_the_connector() -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": ["--kv-offloading-size", "10"]}))
    assert "overwrite" in result.message


@pytest.mark.parametrize(
    "argument",
    [
        "--enforce-eager",
        "--max-num-seqs=4",
        "--kv-events-config={}",
        "32768",
        "-dc",
        "--",
        "-",
        "--model-impl=x",
        "--config-format=hf",
        "-O",
        "-O3",
        "-O=2",
    ],
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
