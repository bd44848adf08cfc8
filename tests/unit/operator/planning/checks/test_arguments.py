"""Checks of the engine's arguments, and of variables that kvtier computes."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.arguments import (
    engine_tls,
    known_arguments,
    reserved_arguments,
    unplanned_arguments,
)
from kvtier_operator.planning.checks.cache_blocks import block_hash
from kvtier_operator.planning.checks.environment import reserved_environment
from kvtier_operator.planning.checks.secrets import secret_arguments
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.planner import make_plan

OLDER, NEWER = "vllm/vllm-openai:v0.32.0", "vllm/vllm-openai:v0.33.0"


def with_words(*words: str, image: str | None = None) -> KVCacheTier:
    return resource(engine={"extraArgs": [*words]} | ({"image": image} if image else {}))


@pytest.mark.parametrize(
    ("words", "position", "said"),
    [
        (["--max-num-seqs 256"], 0, "make it two, '--max-num-seqs' and '256'"),
        (["--max-num-seqs=1 --seed 2"], 0, "vLLM takes a whole number"),
        (["--foo-bar"], 0, "vLLM has no option --foo-bar: remove it"),
        (["--swap-space", "4"], 0, "vLLM has no option --swap-space: remove it"),
        (["--max-num-seq=4", "--max-num-sequences", "4"], 1, "give --max-num-seqs, if that is meant"),
        (
            ["--dtype", "float8"],
            1,
            "--dtype float8: vLLM takes auto, bfloat16,",
        ),
        (["--max-num-batched-tokens", "abc"], 1, "vLLM takes a whole number, or one such as 8k"),
        (["--cudagraph-capture-sizes", "1", "2", "x"], 3, "--cudagraph-capture-sizes x: vLLM takes a whole"),
        (["--limit-mm-per-prompt={"], 0, "vLLM takes JSON"),
        (["--seed", "1", "Qwen/other"], 2, "'Qwen/other' belongs to no option"),
        ([""], 0, "'' belongs to no option"),
        (["--seed"], 0, "--seed needs a value: a whole number"),
        (["--seed", "--enforce-eager"], 0, "--seed needs a value"),
        (["--enforce-eager=1"], 0, "--enforce-eager takes no value"),
        (["--enforce-eager.a=1"], 0, "--enforce-eager has no fields"),
        (["--max-num", "4"], 0, "--max-num may be --max-num-active-seqs, --max-num-batched-tokens,"),
    ],
    ids=str,
)
@pytest.mark.parametrize("image", [None, OLDER, NEWER])
def test_words_that_vllm_refuses(words: list[str], position: int, said: str, image: str | None) -> None:
    result = verdict(known_arguments, with_words(*words, image=image))
    says(result, REJECT, "ArgumentNotKnown", said)
    assert result.field == f"spec.engine.extraArgs[{position}]"
    assert "extraArgs" not in result.message, "one fault is told once"


@pytest.mark.parametrize(
    "words",
    [
        *([], ["--enforce-eager"], ["--no-enforce-eager"], ["--max_num_seqs=4"], ["--max-num-se", "4"]),
        *(["--max-num-batched-tokens", "8k"], ["--max-num-batched-tokens=1.5k"], ["--seed", "-1"]),
        *(["-O3"], ["-O", "2"], ["-cc.mode=3"], ["-cc.pass_config.enable_fusion", "true"], ["-sc", "null"]),
        *(["--moe-backend", "Flashinfer-TRTLLM"], ["--quantization", "None"], ["--middleware=a"]),
        *(["--api-key", "a", "b", "--seed=1"], ["--hf-token"], ["--hf-token", "a"], ["-dc", "{}"]),
        *(["--chat-template", "two words"], ["-cc", '{"a": 8k}'], ["--hf-overrides.a+=1,2"]),
    ],
    ids=str,
)
def test_words_that_vllm_takes(words: list[str]) -> None:
    says(verdict(known_arguments, with_words(*words)), PASS, "Passed")


@pytest.mark.parametrize(
    ("words", "image", "lacks"),
    [
        (["--monokernel"], OLDER, 32),
        (["--disable-lora"], OLDER, 32),
        (["--sleep-mode-backend=a"], OLDER, 32),
        (["--spec-method", "medusa"], NEWER, 33),
    ],
    ids=str,
)
def test_what_one_minor_has(words: list[str], image: str, lacks: int) -> None:
    unknown = with_words(*words, image="r.example/fork:7")
    says(verdict(known_arguments, unknown), WARN, "ArgumentNotKnown", f"in vLLM 0.{lacks}, ")
    by_default = verdict(known_arguments, with_words(*words))  # an image of 0.32
    assert by_default.outcome is (REJECT if lacks == 32 else PASS)
    says(verdict(known_arguments, with_words(*words, image=image)), REJECT, "ArgumentNotKnown")
    other = NEWER if image == OLDER else OLDER
    says(verdict(known_arguments, with_words(*words, image=other)), PASS, "Passed")


def test_words_of_which_no_minor_has_all() -> None:
    local = Observed(machine=Machine())
    result = verdict(known_arguments, with_words("--monokernel", "--spec-method=medusa"), local)
    says(result, REJECT, "ArgumentNotKnown", "in vLLM 0.32, ", "in vLLM 0.33, ")


def test_all_unknown_ones_are_told_at_once() -> None:
    result = verdict(known_arguments, with_words("--foo", "1", "--seed=x", "--bar"))
    says(result, REJECT, "ArgumentNotKnown", "--foo", "extraArgs[2]: --seed x", "extraArgs[3]: vLLM has")


@pytest.mark.parametrize(
    ("words", "item", "message"),
    [
        (["--max-num-seqs", "-1"], 1, "--max-num-seqs -1: vLLM takes a whole number, at least 1"),
        (
            ["--max-num-batched-tokens=0k"],
            0,
            "--max-num-batched-tokens 0k: vLLM takes a whole number, or one",
        ),
        (["--watermark", "1"], 1, "--watermark 1: vLLM takes a number, at least 0 and below 1"),
        (["--watermark=nan"], 0, "--watermark nan: vLLM takes a number, at least 0 and below 1"),
        (["--api-server-count", "0"], 1, "at least 1"),
        (["--max-num-seqs", "8", "--max-num-seqs=0"], 2, "at least 1"),
    ],
    ids=str,
)
def test_numbers_with_which_vllm_does_not_start(words: list[str], item: int, message: str) -> None:
    result = verdict(known_arguments, with_words(*words))
    says(result, REJECT, "ArgumentNotKnown", message)
    assert result.field == f"spec.engine.extraArgs[{item}]"


@pytest.mark.parametrize(
    "words",
    [["--max-num-seqs", "0", "--max-num-seqs=8"], ["--watermark=.5"], ["--max-num-batched-tokens=1k"]],
)
def test_numbers_that_vllm_takes(words: list[str]) -> None:
    says(verdict(known_arguments, with_words(*words)), PASS, "Passed")


def test_an_image_of_ones_own_may_know_more() -> None:
    result = verdict(known_arguments, with_words("--of-a-plugin", image="r.example/fork:7"))
    says(result, WARN, "ArgumentNotKnown", "no option --of-a-plugin", "otherwise kvtier passes them on")


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
    says(result, REJECT, "ReservedArgument", "remove ")
    assert result.field == "spec.engine.extraArgs[1]"


@pytest.mark.parametrize("argument", ["-dcp=2", "-pcp=2", "-pp=2", "--pipeline-par=2"])
def test_other_parallelism_is_not_planned(argument: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": [argument]}))
    says(result, REJECT, "ReservedArgument", "tensor and data parallelism only", "remove it")
    assert "derives" not in result.message


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
    says(
        result,
        REJECT,
        "ReservedVariable",
        "PYTHONHASHSEED",
        "spec.engine.env[LMCACHE_LOCAL_CPU]: kvtier sets",
    )
    assert result.field == "spec.engine.env[PYTHONHASHSEED]"


@pytest.mark.parametrize(
    ("argument", "option"),
    [
        ("--max-model-le", "--max-model-len"),
        ("--max_model_le=4096", "--max-model-len"),
        ("--kv-transfer-conf.kv_role=kv_both", "--kv-transfer-config"),
        ("--no-enable-prefix", "--no-enable-prefix-caching"),
        ("-t=2", "--tensor-parallel-size"),
        ("-O--kv-transfer-config.kv_role=kv_both", "--kv-transfer-config"),
        ("-O=--kv-transfer-conf.kv_role=kv_both", "--kv-transfer-config"),
    ],
)
def test_names_that_are_cut_short(argument: str, option: str) -> None:
    result = verdict(reserved_arguments, resource(engine={"extraArgs": [argument, "2"]}))
    says(result, REJECT, "ReservedArgument", f"vLLM reads it as {option}", "remove ")


def test_a_slip_near_an_option_of_kvtiers_names_the_field() -> None:
    words = ("--max-model-length", "16384", "--pipeline-parallel-sizes=2")
    result = verdict(known_arguments, with_words(*words))
    field = "set spec.engine.maxModelLen if --max-model-len is meant, or remove it"
    says(result, REJECT, "ArgumentNotKnown", field, "--pipeline-parallel-sizes: remove it")


def test_a_name_of_several_options_is_refused_once() -> None:
    one = with_words("--kv-cache-dtyp", "fp8", "--enable-sleep")
    says(
        verdict(known_arguments, one),
        REJECT,
        "ArgumentNotKnown",
        "which; for --kv-cache-dtype set spec.engine.kvC",
    )
    says(verdict(reserved_arguments, one), PASS, "Passed")
    # but what the name of one option is cut to is still looked at
    says(verdict(unplanned_arguments, one), WARN, "UnplannedArgument", "--enable-sleep-mode: each sleep")
    fork = with_words("--kv-cache-dtyp", "fp8", image="r.example/fork:7")
    says(verdict(reserved_arguments, fork), REJECT, "ReservedArgument", "spec.engine.kvCacheDtype")


@pytest.mark.parametrize("words", [["--prefix-caching-hash-algo=md5"], ["--prefix-caching-hash-algo", "md5"]])
def test_a_hash_that_vllm_refuses_is_refused_once(words: list[str]) -> None:
    says(verdict(known_arguments, with_words(*words)), REJECT, "ArgumentNotKnown", "takes sha256, ")
    says(verdict(block_hash, with_words(*words)), PASS, "Refused")
    fork = with_words(*words, image="r.example/fork:7")
    says(verdict(block_hash, fork), WARN, "BlockHashNotCryptographic")


@pytest.mark.parametrize("argument", ["--config", "--config=more.yaml"])
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
    says(result, REJECT, "ReservedArgument", "kvtier derives it from spec.router.kvEvents; set that")


def test_a_collector_of_the_users_own_goes_without_the_field_alone() -> None:
    own = {"extraArgs": ["--otlp-traces-endpoint", "http://a:4317"]}
    says(verdict(reserved_arguments, resource(engine=own)), PASS, "Passed")
    one = resource(engine=own, observability={"tracing": {"endpoint": "http://b:4317"}})
    advice = "kvtier derives it from spec.observability.tracing.endpoint; set that"
    says(verdict(reserved_arguments, one), REJECT, "ReservedArgument", advice)


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


PLAIN, WINDOWS, STATES = "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"


def with_arguments(*arguments: str, model: str = PLAIN) -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--headless"], ["--nnodes", "2"], ["-n2"], ["-n", "2"], ["-r=1"], ["--node_rank=1"]),
        *(["--uds", "/s"], ["--grpc"], ["--host", "127.0.0.1"], ["--host=10.0.0.1"], ["--mm-encoder-only"]),
        *(["--hf-config-path", "other/model"], ["--kv-cache-dtype-skip-layers", "0", "1"]),
        *(["--prefix-match-unit", "32"], ["--use-replayssm"]),
        ["--pooler-config", '{"seq_pooling_type": "MEAN"}', "--runner", "pooling"],
        *(["--pooler-config", '{"pooling_type": "CLS"}'], ["--pooler-config.tok_pooling_type=STEP"]),
    ],
    ids=str,
)
def test_engines_that_are_not_what_is_planned(arguments: list[str]) -> None:
    result = verdict(unplanned_arguments, with_arguments("--seed", "1", *arguments))
    says(result, REJECT, "UnplannedArgument", "remove it")
    assert result.field == "spec.engine.extraArgs[2]"


def test_all_unplanned_ones_are_told_at_once() -> None:
    result = verdict(unplanned_arguments, with_arguments("--headless", "--uds=/s"))
    says(result, REJECT, "UnplannedArgument", "--headless", "spec.engine.extraArgs[1]: --uds")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "0.0.0.0"],  # noqa: S104 - read, not bound
        ["--host=::"],
        ["--no-enable-log-requests"],
        ["--grpc-port", "50051"],
        ["--data-parallel-backend", "mp"],
        ["--no-data-parallel-external-lb"],
        ["--disable-sliding-window"],
        ["--mamba-cache-mode=all"],
        ["--pooler-config", '{"seq_pooling_type": "LAST"}', "--runner", "pooling"],
        ["--pooler-config", '{"seq_pooling_type": "MEAN"}', "--runner", "generate"],
    ],
    ids=str,
)
def test_others_pass(arguments: list[str]) -> None:
    says(verdict(unplanned_arguments, with_arguments(*arguments)), PASS, "Passed")


def test_what_a_model_has_not_cannot_be_changed() -> None:
    says(
        verdict(unplanned_arguments, with_arguments("--disable-sliding-window", model=WINDOWS)),
        REJECT,
        "UnplannedArgument",
    )
    for argument in ("--mamba-cache-mode=all", "--mamba-block-size=16"):
        says(
            verdict(unplanned_arguments, with_arguments(argument, model=STATES)), REJECT, "UnplannedArgument"
        )
    says(
        verdict(unplanned_arguments, with_arguments("--prefix-match-unit=16", model=WINDOWS)), PASS, "Passed"
    )


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--hf-config-path", "remove it, or set spec.model.geometry"),
        ("--kv-cache-dtype-skip-layers", "remove it, or give the sum in spec.model.geometry.kvBytesPerToken"),
        ("--uds", "remove it"),
    ],
)
def test_advice_ends_with_every_way_out(option: str, advice: str) -> None:
    plan = make_plan(with_arguments(option, "0"), Observed())
    [said] = [check.message for check in plan.checks if option in check.message]
    assert said.endswith(advice), "refused once, and with this"


def test_a_geometry_that_is_given_stands() -> None:
    given = {"kvBytesPerToken": 1000}
    for argument in ("--hf-config-path=other/model", "--kv-cache-dtype-skip-layers=0"):
        known = resource(geometry=given, engine={"extraArgs": [argument]})
        says(verdict(unplanned_arguments, known), PASS, "Passed")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--disable-log-stats"],
        ["--enable-sleep-mode"],
        ["--api-server-count", "2"],
        ["--numa-bind"],
        ["--weight-transfer-config", "{}"],
        ["--worker-cls", "a.B"],
    ],
)
def test_what_the_plan_leaves_out(arguments: list[str]) -> None:
    says(verdict(unplanned_arguments, with_arguments(*arguments)), WARN, "UnplannedArgument", arguments[0])


@pytest.mark.parametrize(
    ("model", "words", "warns"),
    [
        ("deepseek-ai/DeepSeek-V3", ["--distributed-executor-backend", "ray"], True),
        ("deepseek-ai/DeepSeek-V3", ["--data-parallel-backend=ray"], True),
        ("deepseek-ai/DeepSeek-V3", ["--distributed-executor-backend=mp"], False),
        ("Qwen/Qwen3-32B", ["--distributed-executor-backend", "ray"], False),
        ("Qwen/Qwen3-32B", ["--enable-sleep-mode", "--no-enable-sleep-mode"], False),
        ("Qwen/Qwen3-32B", ["--api-server-count", "1"], False),
        ("Qwen/Qwen3-32B", ["--mm-processor-kwargs", "{}"], False),
    ],
)
def test_what_is_said_only_where_it_matters(model: str, words: list[str], *, warns: bool) -> None:
    one = resource(model, engine={"tensorParallelSize": 8, "extraArgs": words})
    assert (verdict(unplanned_arguments, one).outcome is WARN) == warns


TLS = ["--ssl-certfile", "/tls/tls.crt", "--ssl-keyfile=/tls/tls.key"]


def test_engines_without_a_certificate() -> None:
    says(verdict(engine_tls, resource()), PASS, "Passed", "HTTP")


@pytest.mark.parametrize("flavor", ["llm-d", "gaie"])
def test_engines_with_a_certificate(flavor: str) -> None:
    router = {"flavor": flavor}
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}, router=router))
    says(result, WARN, "EngineServesTLS", "probes")
    assert "BackendTLSPolicy" not in result.message
    gateway = {"gateway": {"parentRef": {"name": "inference"}}}
    says(
        verdict(engine_tls, resource(engine={"extraArgs": TLS}, router=router | gateway)),
        WARN,
        "EngineServesTLS",
        "BackendTLSPolicy",
    )


def test_kvtier_s_own_picker_asks_over_http() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}, router={"flavor": "builtin"}))
    says(result, REJECT, "EngineServesTLS", "--ssl-certfile", "spec.router.flavor")
    assert result.field == "spec.engine.extraArgs[0]"


def test_a_local_run_asks_over_http() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": TLS}), Observed(machine=Machine()))
    says(result, REJECT, "EngineServesTLS", "local run")


@pytest.mark.parametrize("required", [["--ssl-cert-reqs", "2"], ["--ssl_cert_reqs=2"], ["--ssl-cert-r=2"]])
def test_probes_have_no_certificate_of_a_client(required: list[str]) -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": [*TLS, *required]}))
    says(result, REJECT, "ClientCertificateRequired", "probes")


def test_a_key_alone() -> None:
    result = verdict(engine_tls, resource(engine={"extraArgs": ["--ssl-keyfile", "/tls/tls.key"]}))
    says(result, REJECT, "CertificateMissing", "--ssl-certfile")


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["--api-key", "sekret"], "VLLM_API_KEY with valueFrom.secretKeyRef"),
        (["--hf-token=sekret"], "spec.model.tokenSecretRef"),
    ],
)
def test_a_secret_among_the_arguments(words: list[str], instead: str) -> None:
    result = verdict(secret_arguments, with_words(*words))
    says(result, WARN, "SecretInArguments", instead)
    assert "sekret" not in result.message
    says(verdict(secret_arguments, with_words("--api-key", "$(KEY_OF_A_SECRET)")), PASS, "Passed")
