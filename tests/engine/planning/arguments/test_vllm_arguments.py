"""The rendered command line against vLLM's own parser and configuration types; no engine is started."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tests.cases.checks import REJECT, verdict
from tests.cases.planning import resource

from kvtier_connector.bench.vllm_arguments import ServeOptions, read_arguments, serve_parser
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.command_line import SECOND_NAMES, WHOLE
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.cli.inputs.load import load_resources
from kvtier_operator.planning.arguments.secret_options import SECRETS
from kvtier_operator.planning.checks.arguments import (
    _FILE,
    _RESERVED_OPTIONS,
    _WITH_EVENTS,
    _WITH_VOLUME,
    REFUSED,
    WARNED,
    reserved_arguments,
    unplanned_arguments,
)
from kvtier_operator.planning.checks.environment import expandable_segments
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
INPUTS = sorted((Path(__file__).parents[3] / "unit/operator/golden/input").glob("*.yaml"))
JOBS = sorted((Path(__file__).parents[3] / "unit/operator/golden/output").glob("*/bench-job.yaml"))
CONNECTORS = {
    "KVTier": "KVTierConnector",
    "Native": "OffloadingConnector",
    "LMCache": "LMCacheConnectorV1",
    "LMCacheMP": "LMCacheMPConnector",
}
Parse = Callable[[Sequence[str]], Any]


@pytest.fixture(scope="module")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415 - takes seconds

    parser = serve_parser()
    folder = str(tmp_path_factory.mktemp("model"))

    def read(arguments: Sequence[str]) -> Any:  # noqa: ANN401 - vLLM publishes no types
        namespace = parser.parse_args(list(arguments))
        assert namespace.model_tag == arguments[0]
        namespace.model = folder  # offline, vLLM looks for the model's files here already
        return AsyncEngineArgs.from_cli_args(namespace)

    return read


def test_the_server_reads_which_adapters_there_are() -> None:
    [path] = [each for each in INPUTS if each.stem == "names-and-adapters"]
    [(_, resource)] = load_resources([str(path)])
    found = serve_parser().parse_args(list(make_plan(resource, Observed()).engine.args))
    adapters = [(module.name, module.path) for module in found.lora_modules]
    assert adapters == [(module.name, module.source) for module in resource.spec.model.lora_modules]
    assert (found.max_loras, found.max_cpu_loras, found.max_lora_rank) == (2, 2, 16)


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_vllm_reads_what_the_resource_says(path: Path, parse: Parse) -> None:
    [(_, resource)] = load_resources([str(path)])
    spec = resource.spec
    args = parse(make_plan(resource, Observed()).engine.args)
    assert args.served_model_name == [*spec.model.names]
    assert bool(args.enable_lora) is bool(spec.model.lora_modules)
    assert args.revision == spec.model.revision
    assert args.tensor_parallel_size == spec.engine.tensor_parallel_size
    assert args.data_parallel_size == spec.engine.data_parallel_size
    on_cpu = spec.engine.device is Device.CPU
    assert args.block_size == (engine_block_tokens(spec.engine) if on_cpu else spec.engine.block_size)
    assert args.kv_cache_dtype == spec.engine.kv_cache_dtype
    assert args.enable_prefix_caching is True
    assert args.shutdown_timeout == spec.engine.drain_seconds
    assert args.kv_offloading_size is None
    if spec.engine.kv_cache_memory is not None:
        assert args.kv_cache_memory_bytes == spec.engine.kv_cache_memory.bytes
    transfer = args.kv_transfer_config
    assert (transfer.kv_connector, transfer.kv_role) == (CONNECTORS[spec.backend], "kv_both")


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.parent.name)
def test_the_bench_s_engines_get_what_a_job_says(path: Path, tmp_path: Path) -> None:
    [job] = yaml.safe_load_all(path.read_text())
    [container] = job["spec"]["template"]["spec"]["containers"]
    arguments = container["args"][container["args"].index("--") + 1 :]
    found = read_arguments(arguments, str(tmp_path))
    options = ServeOptions.read(arguments)
    assert (found["model"], found["data_parallel_size"], found["revision"]) == (str(tmp_path), 1, None)
    assert (found["block_size"], found["tensor_parallel_size"]) == (options.block_tokens, options.ranks)
    assert found["kv_transfer_config"].kv_connector == "KVTierConnector"


def test_no_option_of_vllms_is_taken_for_another_that_kvtier_asks_for() -> None:
    options = serve_parser()._option_string_actions
    asked = {*_RESERVED_OPTIONS, *_WITH_VOLUME, *_WITH_EVENTS, "--dtype", "--prefix-caching-hash-algo", _FILE}
    asked |= {*SECRETS, "--disable-hybrid-kv-cache-manager", "--no-disable-hybrid-kv-cache-manager"}
    asked |= {
        "--prefix-cache-retention-interval",
        "--attention-backend",
        "--hf-overrides",
        "--enable-sleep-mode",
    }
    asked |= {"--enable-cumem-allocator", "--ssl-certfile", "--ssl-keyfile", "--ssl-cert-reqs"}
    asked |= {"--api-server-count", "--load-format", "--max-num-seqs", "--mm-processor-cache-gb"}
    asked |= {"--mm-processor-cache-type", "--model-loader-extra-config", "--cpu-offload-gb"}
    asked |= {
        "--offload-group-size",
        "--offload-num-in-group",
        "--language-model-only",
        "--ec-transfer-config",
    }
    asked |= {"--limit-mm-per-prompt", "--enable-shm-tensor-arena", "--enable-trace-replay"}
    asked |= {"--distributed-executor-backend", "--data-parallel-backend", "--performance-mode"}
    asked |= {"--max-num-scheduled-tokens", "--long-prefill-token-threshold"}
    asked |= {"--speculative-config", "--spec-method", "--spec-model", "--spec-tokens"}
    asked |= {"--enable-lora", "--max-num-batched-tokens", *REFUSED, *WARNED}
    begins = {own for own in options for name in asked if own != name and name.startswith(own)}
    assert begins <= WHOLE
    assert options.keys() > {*SECRETS, _FILE}
    missing = {
        name
        for reserved in (*_RESERVED_OPTIONS, *REFUSED, *WARNED)
        for name in (options[reserved].option_strings if reserved in options else ())
        if name not in {*_RESERVED_OPTIONS, *REFUSED, *WARNED, *SECOND_NAMES}
    }
    opposites = ("--no-", "--enable-sliding-window", "--disable-sleep-mode")
    assert {name for name in missing if not name.startswith(opposites)} == set()
    assert options.keys() >= {*REFUSED, *WARNED}
    assert REFUSED.keys().isdisjoint(_RESERVED_OPTIONS), "refused once"


def _engine_of_everything(words: list[str]) -> KVCacheTier:
    """A model of which every rule may say something: windows, no geometry."""
    return resource("openai/gpt-oss-120b", engine={"extraArgs": words})


STATES = ("--mamba-block-size", "--mamba-cache-mode")


@pytest.mark.parametrize("option", sorted({*REFUSED} - {"--pooler-config", "--prefix-match-unit", *STATES}))
def test_an_option_that_reaches_vllm_is_seen_by_the_check_of_unplanned_ones(option: str) -> None:
    for words in _ways_that_reach_vllm(option):
        seen = verdict(unplanned_arguments, _engine_of_everything(words))
        assert seen.outcome is REJECT, words


def _ways_that_reach_vllm(option: str) -> list[list[str]]:
    """Those of `_ways` by which vLLM takes the option; at least one."""
    parser = serve_parser()
    action = parser._option_string_actions[option]
    reached = []
    for words in _ways(option):
        try:
            found = parser.parse_args(["model", *words])
        except (SystemExit, ValueError, IndexError):
            continue
        if getattr(found, action.dest) != action.default:
            reached.append(words)
    assert reached, "none of the ways is one"
    return reached


def _ways(option: str) -> Iterator[list[str]]:
    """How one may try to give an option to vLLM."""
    for name in (option, option.replace("-", "_").replace("__", "--", 1), option[:-1]):
        yield [name]
        for value in ("3", "lmcache", "fp8"):
            yield from ([name, value], [f"{name}={value}"], [f"{name}{value}"], [f"{name} {value}"])
        yield from ([f"{name}.kv_role", "kv_both"], [f"{name}.kv_role=kv_both"])
        yield from ([f"{name}.kv_role+", "kv_both"], [f"{name}.kv_connector_extra_config.a+=1"])
        yield from ([f"-O{name}", "3"], [f"-O{name}=3", "3"], [f"-O={name}", "3"])
        yield from ([f"-O{name}.kv_role=kv_both", "3"], [f"-O={name}.kv_role=kv_both", "3"])
        yield from (["--", name, "3"], [f"-{name}=3"], [f"@{name}"], ["-O", name, "3"])


WITHOUT_EFFECT = {
    "--disable-prefix-caching",  # vLLM has it no more
    "--no-data-parallel-external-lb",  # as they are
    "--no-data-parallel-hybrid-lb",
}


@pytest.mark.parametrize("option", sorted({*_RESERVED_OPTIONS} - WITHOUT_EFFECT))
def test_an_option_that_reaches_vllm_is_seen_by_the_check(option: str) -> None:
    for words in _ways_that_reach_vllm(option):
        assert verdict(reserved_arguments, resource(engine={"extraArgs": words})).outcome is REJECT, words


def test_a_file_of_arguments_reaches_vllm_and_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text("max-model-len: 7\n")
    assert serve_parser().parse_args(["model", _FILE, str(path)]).max_model_len == 7
    assert verdict(reserved_arguments, resource(engine={"extraArgs": [_FILE, str(path)]})).outcome is REJECT


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ("expandable_segments:True", []),
        ("max_split_size_mb:512,expandable_segments:True", []),
        ("expandable_segments:False", []),
        ("expandable_segments:True", ["--enable-cumem-allocator"]),
    ],
)
def test_expandable_segments_are_refused_where_vllm_refuses_them(
    value: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.config import KVTransferConfig, VllmConfig  # noqa: PLC0415 - takes seconds

    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", value)
    config = VllmConfig()
    config.kv_transfer_config = KVTransferConfig(kv_connector="OffloadingConnector", kv_role="kv_both")
    config.model_config = SimpleNamespace(enable_sleep_mode=False, enable_cumem_allocator=bool(arguments))
    env = [{"name": "PYTORCH_CUDA_ALLOC_CONF", "value": value}]
    refused = verdict(expandable_segments, resource(engine={"env": env, "extraArgs": arguments}))
    if refused.outcome is not REJECT:
        config._verify_kv_transfer_compat()
        return
    with pytest.raises(ValueError, match="expandable_segments"):
        config._verify_kv_transfer_compat()
