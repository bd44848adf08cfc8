"""vLLM's own configuration of an engine that others own: with the tier, or exactly as it would have been."""

import json
import logging
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pytest
from prometheus_client import REGISTRY
from tests.shared.newer_vllm import engines_environment

from kvtier_connector import plugin
from kvtier_connector.attach.decisions import INFO_METRIC, Reason
from kvtier_connector.config import CONNECTOR_NAME, MIB, ConnectorConfig, kv_transfer_config
from kvtier_connector.payload import ATTACH_VARIABLE

if TYPE_CHECKING:
    from vllm.engine.arg_utils import EngineArgs

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

TIER = {"cpu_capacity_bytes": 16 * MIB, "disk_path": "/scratch/kvtier", "disk_capacity_bytes": 8 * MIB}


WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "max_target_positions": 1024,
}
NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
MULTI = NIXL | {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": [NIXL]}}
OWN_EXECUTOR = "vllm.v1.executor.uniproc_executor.UniProcExecutor"
BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 1024,
}


LLAVA = {
    "architectures": ["LlavaForConditionalGeneration"],
    "model_type": "llava",
    "image_token_index": 99,
    "text_config": {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 128,
        "max_position_embeddings": 1024,
    },
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    },
}


class Arguments(Protocol):
    """Makes the arguments of a small engine, with others in place of what it has."""

    def __call__(self, **changes: object) -> "EngineArgs": ...


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that has vLLM's plug-in called, once vLLM has been changed as a test wants it."""
    from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 - takes seconds

    from kvtier_connector.attach import metric  # noqa: PLC0415 - as above

    monkeypatch.setattr(EngineArgs, "create_engine_config", EngineArgs.create_engine_config)  # put back later
    monkeypatch.setattr(metric, "_told", [])
    metric._gauge().clear()

    def register(text: str = json.dumps(TIER)) -> None:
        monkeypatch.setenv(ATTACH_VARIABLE, text)
        plugin.register()

    return register


@pytest.fixture
def arguments(model_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Arguments:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")  # which an external launcher has vLLM change
    for name, value in engines_environment().items():
        monkeypatch.setenv(name, value)

    def make(**changes: object) -> "EngineArgs":
        from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 - takes seconds

        small: dict[str, Any] = {"skip_tokenizer_init": True, "dtype": "float32", "enforce_eager": True}
        small |= {"model": str(model_folder()), "max_model_len": 1024}
        return EngineArgs(**(small | changes))

    return make


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the plug-in says; vLLM takes handlers and levels away when it configures its loggers."""
    said = list[str]()

    def say(message: str, *values: object) -> None:
        said.append(message % values)

    for level in ("info", "warning", "exception"):
        monkeypatch.setattr(logging.getLogger("vllm.kvtier"), level, say)
    return said


def reasons() -> dict[str, float]:
    """The samples that vLLM's /metrics has."""
    samples = [sample for family in REGISTRY.collect() for sample in family.samples]
    return {sample.labels["reason"]: sample.value for sample in samples if sample.name == INFO_METRIC}


def test_an_engine_gets_the_tier_once_however_often_it_is_asked_for(
    registered: Callable[..., None], arguments: Arguments, lines: list[str]
) -> None:
    registered()
    registered()
    given = arguments()
    config = given.create_engine_config()
    transfer = config.kv_transfer_config
    assert (transfer.kv_connector, transfer.kv_load_failure_policy) == (CONNECTOR_NAME, "recompute")
    extra = transfer.kv_connector_extra_config
    assert extra.items() >= {**TIER, "attached": True}.items()
    assert "blocks_per_chunk" not in extra, "which the engine chooses"
    assert given.kv_transfer_config is None, "what the owner has written has changed"
    assert lines == ["kvtier: attached: 16.0 MiB of memory and 8.0 MiB of disk for the engine"]
    assert reasons() == {Reason.ATTACHED.value: 1.0}


def test_data_parallel_engines_share_the_pod_s_tier(
    registered: Callable[..., None], arguments: Arguments
) -> None:
    registered()
    config = arguments(data_parallel_size=2).create_engine_config()
    extra = config.kv_transfer_config.kv_connector_extra_config
    assert (extra["cpu_capacity_bytes"], extra["disk_capacity_bytes"]) == (8 * MIB, 4 * MIB)


@pytest.mark.parametrize(
    ("changes", "connector", "reason"),
    [
        ({"kv_transfer_config": NIXL}, "NixlConnector", Reason.HAS_CONNECTOR),
        ({"kv_transfer_config": MULTI}, "MultiConnector", Reason.HAS_CONNECTOR),
        ({"kv_offloading_size": 1.0}, "OffloadingConnector", Reason.HAS_CONNECTOR),
        ({"enable_prefix_caching": False}, None, Reason.NO_PREFIX_CACHING),
        ({"pipeline_parallel_size": 2}, None, Reason.PIPELINE_PARALLEL),
        ({"distributed_executor_backend": "external_launcher"}, None, Reason.UNKNOWN_EXECUTOR),
        ({"distributed_executor_backend": OWN_EXECUTOR}, None, Reason.UNKNOWN_EXECUTOR),
        ({"data_parallel_backend": "ray"}, None, Reason.UNKNOWN_EXECUTOR),
    ],
)
def test_what_its_arguments_say_against_it(  # noqa: PLR0913, PLR0917 - what is given and what comes of it
    registered: Callable[..., None],
    arguments: Arguments,
    lines: list[str],
    changes: dict[str, object],
    connector: str | None,
    reason: Reason,
) -> None:
    from vllm.config import KVTransferConfig  # noqa: PLC0415 - takes seconds

    if transfer := changes.get("kv_transfer_config"):
        changes = {"kv_transfer_config": KVTransferConfig(**cast("dict[str, Any]", transfer))}
    registered()
    left_alone(arguments(**changes), connector, reason, lines)


def left_alone(given: "EngineArgs", connector: str | None, reason: Reason, lines: list[str]) -> None:
    transfer = given.create_engine_config().kv_transfer_config
    assert (transfer and transfer.kv_connector) == connector
    assert reasons() == {reason.value: 1.0}
    assert len(lines) == 1
    assert lines[0].startswith(f"kvtier: this engine is left alone ({reason.value}): ")


def test_prefix_caching_that_vllm_turns_off_itself(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 - takes seconds

    def choose(self: "EngineArgs", *_: object) -> None:
        self.enable_prefix_caching, self.enable_chunked_prefill = False, True

    monkeypatch.setattr(EngineArgs, "_set_default_chunked_prefill_and_prefix_caching_args", choose)
    registered()
    left_alone(arguments(), None, Reason.NO_PREFIX_CACHING, lines)


@pytest.mark.parametrize("model", [WHISPER, BERT], ids=["encoder-decoder", "encoder-only"])
def test_models_that_vllm_gives_no_connector(
    registered: Callable[..., None],
    arguments: Arguments,
    lines: list[str],
    tmp_path: Path,
    model: dict[str, object],
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(model))
    features = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(features))
    registered()
    encoder = arguments(model=str(tmp_path), enable_prefix_caching=True)
    left_alone(encoder, None, Reason.UNSUPPORTED_MODEL, lines)


@pytest.mark.parametrize("is_managed", [True, False])
def test_a_tier_has_an_engine_accept_no_embeddings(
    registered: Callable[..., None],
    arguments: Arguments,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_managed: bool,
) -> None:
    from vllm.config import KVTransferConfig, VllmConfig  # noqa: PLC0415 - takes seconds

    (tmp_path / "config.json").write_text(json.dumps(LLAVA))

    def accepts(*, enabled: bool = False) -> tuple[bool, bool]:
        config = arguments(model=str(tmp_path), enable_mm_embeds=enabled, **transfer).create_engine_config()
        assert config.kv_transfer_config.kv_connector == CONNECTOR_NAME
        pictures = config.model_config.multimodal_config
        return pictures.enable_mm_embeds, pictures.allow_missing_mm_embeddings

    ours = KVTransferConfig(**kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=16 * MIB)))
    transfer = {"kv_transfer_config": ours} if is_managed else {}
    resolve = VllmConfig._resolve_mm_embedding_inputs
    monkeypatch.setattr(VllmConfig, "_resolve_mm_embedding_inputs", getattr(resolve, "__wrapped__", resolve))
    if is_managed:
        assert accepts() == (True, True), "vLLM decides otherwise, and nothing has to be changed"
        monkeypatch.delenv(ATTACH_VARIABLE, raising=False)
        plugin.register()
    else:
        registered()
    assert accepts() == (False, False)
    assert accepts(enabled=True) == (True, False)


@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_on_several_nodes_start_as_they_would_have(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], rank: int
) -> None:
    # vLLM says where the ranks are once it is configured, and refuses what it has written into the arguments
    registered()
    nodes = arguments(tensor_parallel_size=2, nnodes=2, node_rank=rank, master_addr="127.0.0.1")
    left_alone(nodes, None, Reason.SEVERAL_NODES, lines)


def test_a_server_that_vllm_s_supervisor_has_started(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.entrypoints.launchers import dp_supervisor  # noqa: PLC0415 - takes seconds

    name = "APIServer_DPRank_1"
    assert name.removesuffix("1") in Path(str(dp_supervisor.__file__)).read_text()
    monkeypatch.setattr(multiprocessing.current_process(), "name", name)
    registered()
    left_alone(arguments(), None, Reason.SEVERAL_SERVERS, lines)


def test_a_launcher_that_vllm_chooses(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.engine.arg_utils import EngineArgs  # noqa: PLC0415 - takes seconds

    original = EngineArgs.create_engine_config

    def within_ray(self: "EngineArgs") -> object:
        config = original(self)
        config.parallel_config.distributed_executor_backend = "ray"
        return config

    monkeypatch.setattr(EngineArgs, "create_engine_config", within_ray)
    registered()
    left_alone(arguments(), None, Reason.UNKNOWN_EXECUTOR, lines)


def test_a_server_that_another_of_its_pod_was_before(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import kvtier_connector.attach.begin  # noqa: F401, PLC0415 - takes seconds

    monkeypatch.setattr("kvtier_connector.attach.begin.claim_tier", lambda: False)
    registered()
    left_alone(arguments(), None, Reason.SEVERAL_SERVERS, lines)


def test_a_vllm_that_refuses_a_connector_is_asked_again_without(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # vLLM writes the rank into the arguments, and refuses them with it the next time
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    registered()
    left_alone(arguments(data_parallel_size=2, data_parallel_size_local=2), None, Reason.FAILED, lines)
    assert "expandable_segments" in lines[0]


@pytest.mark.parametrize("text", ["{", '{"cpu_capacity_bytes": 1, "more": 2}'])
def test_a_variable_that_is_not_understood(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], text: str
) -> None:
    registered(text)
    left_alone(arguments(), None, Reason.BAD_SETTINGS, lines)


def test_a_connector_that_cannot_be_imported(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kvtier_connector.vllm.upstream.engine_args.CONNECTOR_MODULE", "kvtier_connector.none"
    )
    registered()
    left_alone(arguments(), None, Reason.FAILED, lines)


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("__version__", "0.31.2", Reason.UNKNOWN_VERSION),
        ("missing_packages_text", lambda: "xxhash is missing", Reason.PACKAGES_MISSING),
    ],
)
def test_what_the_connector_cannot_run_with(  # noqa: PLR0913, PLR0917 - what is given and what comes of it
    registered: Callable[..., None],
    arguments: Arguments,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    attribute: str,
    value: object,
    reason: Reason,
) -> None:
    import kvtier_connector.attach.begin  # noqa: F401, PLC0415 - takes seconds

    monkeypatch.setattr(f"kvtier_connector.attach.begin.{attribute}", value)
    registered()
    left_alone(arguments(), None, reason, lines)


def test_a_device_that_the_connector_does_not_know(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.platforms import current_platform  # noqa: PLC0415 - takes seconds

    with monkeypatch.context() as patch:
        patch.setattr(type(current_platform), "is_cpu", lambda _: False)
        registered()
    left_alone(arguments(), None, Reason.UNKNOWN_DEVICE, lines)


def test_a_plug_in_that_fails_ends_no_engine(
    registered: Callable[..., None], arguments: Arguments, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import kvtier_connector.attach.begin  # noqa: F401, PLC0415 - takes seconds

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("kvtier_connector.attach.begin.begin", fail)
    registered()
    assert arguments().create_engine_config().kv_transfer_config is None
    assert lines == ["kvtier: the plug-in failed, and attaches no engine"]
