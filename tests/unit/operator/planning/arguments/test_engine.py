import json

import pytest
from tests.unit.operator.planning.backends.planned import resource

from kvtier_operator.planning.base.container_parts import EnginePlan
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.planner import make_plan

GIB = 1 << 30


def engine(changes: dict[str, object]) -> EnginePlan:
    return make_plan(resource(changes), Observed()).engine


def value(plan: EnginePlan, option: str) -> str | None:
    return plan.args[plan.args.index(option) + 1] if option in plan.args else None


def test_the_model_comes_first_and_what_the_user_adds_last() -> None:
    plan = engine({"spec.engine.extraArgs": ["--enforce-eager", "--max-num-seqs", "64"]})
    assert plan.args[0] == value(plan, "--served-model-name") == "Qwen/Qwen3-32B"
    assert plan.args[-3:] == ("--enforce-eager", "--max-num-seqs", "64")


@pytest.mark.parametrize(
    ("changes", "option", "expected"),
    [
        ({}, "--tensor-parallel-size", "1"),
        ({"spec.engine.tensorParallelSize": 4}, "--tensor-parallel-size", "4"),
        ({"spec.engine.dataParallelSize": 2}, "--data-parallel-size", "2"),
        ({}, "--max-model-len", None),
        ({"spec.engine.maxModelLen": 8192}, "--max-model-len", "8192"),
        ({}, "--block-size", None),
        ({"spec.engine.blockSize": 32}, "--block-size", "32"),
        ({"spec.engine.device": "cpu"}, "--block-size", "128"),
        ({"spec.engine.device": "cpu", "spec.engine.blockSize": 32}, "--block-size", "32"),
        ({"spec.engine.port": 9000}, "--port", "9000"),
        ({}, "--revision", None),
        ({"spec.model.revision": "main"}, "--revision", "main"),
        ({}, "--kv-cache-dtype", None),
        ({"spec.engine.kvCacheDtype": "fp8_e4m3"}, "--kv-cache-dtype", "fp8_e4m3"),
        ({}, "--gpu-memory-utilization", None),
        ({"spec.engine.gpuMemoryUtilization": 0.85}, "--gpu-memory-utilization", "0.85"),
        ({}, "--kv-cache-memory-bytes", None),
        ({"spec.engine.kvCacheMemory": "1.5Gi"}, "--kv-cache-memory-bytes", str(3 * GIB // 2)),
        ({"spec.engine.device": "cpu"}, "--kv-cache-memory-bytes", str(4 * GIB)),
    ],
    ids=str,
)
def test_options(changes: dict[str, object], option: str, expected: str | None) -> None:
    assert value(engine(changes), option) == expected


def test_the_names_that_clients_ask_for() -> None:
    plan = engine({"spec.model.servedNames": ["chat", "team/chat"]})
    at = plan.args.index("--served-model-name")
    assert plan.args[at + 1 : at + 3] == ("chat", "team/chat")
    assert plan.args[0] == "Qwen/Qwen3-32B"


ADAPTERS = [{"name": "sql", "source": "org/sql-lora"}, {"name": "law", "source": "/adapters/law"}]


@pytest.mark.parametrize(
    ("words", "in_memory"),
    [([], "2"), (["--max-loras", "3"], "3"), (["--max-cpu-loras", "7"], None)],
    ids=str,
)
def test_adapters_that_all_stay_in_memory(words: list[str], in_memory: str | None) -> None:
    plan = engine({"spec.model.loraModules": ADAPTERS, "spec.engine.extraArgs": words})
    assert "--enable-lora" in plan.args
    at = plan.args.index("--lora-modules")
    assert plan.args[at + 1 : at + 4] == ("sql=org/sql-lora", "law=/adapters/law", "--port")
    assert value(plan, "--max-cpu-loras") == (in_memory or "7")
    assert plan.args.count("--max-cpu-loras") == 1
    assert "--enable-lora" not in engine({}).args


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCache", "LMCacheMP"])
def test_no_option_that_replaces_the_connector(backend: str) -> None:
    plan = engine({"spec.backend": backend})
    assert "--enable-prefix-caching" in plan.args
    assert plan.args.count("--kv-transfer-config") == 1
    assert not [arg for arg in plan.args if arg.startswith("--kv-offloading")]
    assert plan.env["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize(
    ("backend", "device", "image"),
    [
        ("KVTier", "gpu", "vllm/vllm-openai:v0.32.0"),
        ("KVTier", "cpu", "vllm/vllm-openai-cpu:v0.32.0"),
        ("Native", "gpu", "vllm/vllm-openai:v0.32.0"),
        ("LMCache", "gpu", "lmcache/vllm-openai:v0.5.6"),
        ("LMCacheMP", "gpu", "lmcache/vllm-openai:v0.5.6"),
    ],
)
def test_image_by_backend_and_device(backend: str, device: str, image: str) -> None:
    changes: dict[str, object] = {"spec.backend": backend, "spec.engine.device": device}
    assert engine(changes).image == image
    assert engine(changes | {"spec.engine.image": "mine:1"}).image == "mine:1"


def test_in_a_cluster_cores_are_bound_to_no_rank() -> None:
    assert engine({"spec.engine.device": "cpu"}).env["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert "VLLM_CPU_OMP_THREADS_BIND" not in engine({}).env


@pytest.mark.parametrize(
    ("changes", "cores", "expected"),
    [
        ({}, (0, 1), "0,1"),
        ({}, (2, 5, 6), "2,5,6"),
        ({"spec.engine.tensorParallelSize": 2}, (0, 1, 2, 3, 4), "0,1|2,3"),
        ({"spec.engine.tensorParallelSize": 2}, (0,), "nobind"),
        ({"spec.engine.dataParallelSize": 2}, (0, 1), "nobind"),
        ({"spec.replicas": 2}, (0, 1), "nobind"),
    ],
)
def test_an_engine_with_a_machine_to_itself_gets_its_cores(
    changes: dict[str, object], cores: tuple[int, ...], expected: str
) -> None:
    wanted = resource({"spec.engine.device": "cpu", **changes})
    plan = make_plan(wanted, Observed(machine=Machine(cores=cores))).engine
    assert plan.env["VLLM_CPU_OMP_THREADS_BIND"] == expected


@pytest.mark.parametrize(
    ("changes", "cores", "threads"),
    [
        ({}, 8, None),
        ({"spec.replicas": 2}, 0, None),
        ({"spec.replicas": 2}, 8, "4"),
        ({"spec.replicas": 2, "spec.engine.tensorParallelSize": 2}, 8, "2"),
        ({"spec.replicas": 3}, 2, "1"),
    ],
)
def test_engines_of_one_machine_share_its_cores(
    changes: dict[str, object], cores: int, threads: str | None
) -> None:
    wanted = resource({"spec.engine.device": "cpu", **changes})
    plan = make_plan(wanted, Observed(machine=Machine(cores=tuple(range(cores))))).engine
    assert plan.env.get("OMP_NUM_THREADS") == threads


def test_the_user_s_variables_win_and_keep_their_sources() -> None:
    variables = [
        {"name": "VLLM_CPU_OMP_THREADS_BIND", "value": "0-3"},
        {"name": "EMPTY"},
        {"name": "FROM", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ]
    plan = engine({"spec.engine.device": "cpu", "spec.engine.env": variables})
    assert plan.env["VLLM_CPU_OMP_THREADS_BIND"] == "0-3"
    assert plan.env["EMPTY"] == ""
    assert plan.env_from_resource == (variables[2],)


def test_the_token_is_referred_to_never_read() -> None:
    plan = engine({"spec.model.tokenSecretRef": {"name": "hf", "key": "token"}})
    assert plan.env_from_resource == (
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
    )


def test_only_engines_of_a_cluster_publish_events_and_what_the_user_adds_stays() -> None:
    added = '--kv-events-config={"enable_kv_cache_events":true}'
    follows = resource({"spec.router": {"flavor": "builtin", "kvEvents": True}})
    own = resource({"spec.router": {"flavor": "builtin"}, "spec.engine.extraArgs": [added]})
    here = Observed(machine=Machine(cores=(0, 1)))
    config = value(make_plan(follows, Observed()).engine, "--kv-events-config")
    assert config is not None
    assert json.loads(config)["enable_kv_cache_events"]
    assert "--kv-events-config" not in make_plan(follows, here).engine.args
    assert make_plan(own, here).engine.args[-1] == added


def test_only_engines_of_a_cluster_drain() -> None:
    here = Observed(machine=Machine(cores=(0, 1)))
    assert value(engine({"spec.engine.drainSeconds": 60}), "--shutdown-timeout") == "60"
    assert "--shutdown-timeout" not in make_plan(resource({}), here).engine.args


def test_several_engines_of_a_pod_have_one_api_server() -> None:
    """vLLM drains behind one alone."""
    several = engine(
        {"spec.engine.dataParallelSize": 2, "spec.engine.extraArgs": ["--api-server-count", "2"]}
    )
    assert value(several, "--api-server-count") == "1"
    assert several.args[-2:] == ("--api-server-count", "2"), "what the user adds wins"
    assert value(engine({}), "--api-server-count") is None
