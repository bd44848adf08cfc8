"""The rendered command line against vLLM's own parser and configuration types; no engine is started."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kvtier_connector.bench.given import Given
from kvtier_connector.bench.llm import read_arguments, serve_parser
from kvtier_operator.cli.load import load_resources
from kvtier_operator.planning.block_tokens import engine_block_tokens
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
INPUTS = sorted((Path(__file__).parents[2] / "unit/operator/golden/input").glob("*.yaml"))
JOBS = sorted((Path(__file__).parents[2] / "unit/operator/golden/output").glob("*/bench-job.yaml"))
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


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_vllm_reads_what_the_resource_says(path: Path, parse: Parse) -> None:
    [(_, resource)] = load_resources([str(path)])
    spec = resource.spec
    args = parse(make_plan(resource, Observed()).engine.args)
    assert args.served_model_name == [spec.model.name]
    assert args.revision == spec.model.revision
    assert args.tensor_parallel_size == spec.engine.tensor_parallel_size
    assert args.data_parallel_size == spec.engine.data_parallel_size
    assert args.block_size == engine_block_tokens(spec.engine)
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
    given = Given.read(arguments)
    assert (found["model"], found["data_parallel_size"], found["revision"]) == (str(tmp_path), 1, None)
    assert (found["block_size"], found["tensor_parallel_size"]) == (given.block_tokens, given.ranks)
    assert found["kv_transfer_config"].kv_connector == "KVTierConnector"
