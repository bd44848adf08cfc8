"""What is asked about each model: splits, cache dtypes, blocks, backends."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_SPLITS: Final = (1, 2, 4, 8, 16)
_DTYPES: Final = ("auto", "fp8")
_BLOCKS: Final = (16, 32, 128)
# Once a model: dtypes that change bytes a token in a way of their own, and other connectors.
_OTHER_DTYPES: Final = (
    *("float16", "bfloat16", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla"),
    *("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit"),
    *("int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "nvfp4", "nvfp4_4over6"),
)
DRAFTS: Final = "DRAFTS/"
_OTHER_BACKENDS: Final = ("Native", "LMCache")
_PREDICTORS: Final = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
_CONNECTORS: Final[dict[str, dict[str, Any]]] = {
    "KVTier": {
        "kv_connector": "KVTierConnector",
        "kv_connector_module_path": "kvtier_connector.vllm.connector",
    },
    "Native": {"kv_connector": "OffloadingConnector"},
    "LMCache": {"kv_connector": "LMCacheConnectorV1"},
}


@dataclass(frozen=True, slots=True)
class Combination:
    """One engine.

    Attributes:
        ranks: Tensor-parallel size.
        dtype: `--kv-cache-dtype`.
        block: `--block-size`; None for vLLM's own choice.
        backend: The resource's backend.
        method: Of speculative decoding by the model's own layers; empty without any.
        arguments: Other words of `vllm serve`; `DRAFTS/` in them is the folder of a model's drafts.
    """

    ranks: int = 1
    dtype: str = "auto"
    block: int | None = None
    backend: str = "KVTier"
    method: str = ""
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        block = f", block {self.block}" if self.block else ""
        backend = f", {self.backend}" if self.backend != "KVTier" else ""
        method = f", {self.method}" if self.method else ""
        words = "".join(f", {word}" for word in self.arguments)
        return f"TP {self.ranks}, {self.dtype}{block}{backend}{method}{words}"

    @property
    def speculation(self) -> dict[str, Any]:
        """`--speculative-config`; empty without any."""
        return {"method": self.method, "num_speculative_tokens": 1} if self.method else {}

    def vllm_arguments(self) -> dict[str, Any]:
        """As the engine is told."""
        transfer = {"kv_role": "kv_both", "kv_connector_extra_config": {"cpu_bytes_to_use": 1 << 30}}
        return {
            "tensor_parallel_size": self.ranks,
            "kv_cache_dtype": self.dtype,
            "block_size": self.block,
            "kv_transfer_config": _CONNECTORS[self.backend] | transfer,
            "speculative_config": self.speculation or None,
        }

    def words(self, folder: Path) -> list[str]:
        """Those other words, with the drafts in this model's folder."""
        return [word.replace(DRAFTS, f"{folder}/{DRAFTS}") for word in self.arguments]

    def as_data(self) -> dict[str, Any]:
        """As it is written down."""
        return asdict(self)


def combinations(config: Mapping[str, Any]) -> Iterator[Combination]:
    """All of a model, those of the same split together.

    Args:
        config: Its config.json.
    """
    for ranks in _SPLITS:
        yield from (Combination(ranks, dtype) for dtype in _DTYPES)
        yield Combination(ranks, block=64)
        if ranks == 1:
            yield from (Combination(block=block) for block in _BLOCKS)
            yield from (Combination(dtype="fp8", block=block) for block in (*_BLOCKS, 64))
            yield from (Combination(dtype=dtype) for dtype in _OTHER_DTYPES)
        if ranks <= 2:
            yield from (Combination(ranks, backend=backend) for backend in _OTHER_BACKENDS)
    if _predicts(config):
        yield from (Combination(ranks, method="mtp") for ranks in _SPLITS[:2])


def _predicts(config: Mapping[str, Any]) -> bool:
    """Whether the model brings layers that draft its next tokens."""
    text = config.get("text_config") or config
    return any(isinstance(text.get(name), int) and text[name] > 0 for name in _PREDICTORS)
