"""Models that are asked about: the catalogue's entries, and the configurations in tests/cases/models."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.engine.planning.oracle.combinations import DRAFTS, Combination, combinations

from kvtier_operator.planning.model_shape.catalogue import entries

MODELS: Final = Path(__file__).parents[3] / "cases/models"
_ROWS: Final = Path(__file__).with_name("rows")
ROW: Final = "row: "
"""How the names of those begin."""
# The catalogue leaves out what a cache does not depend on; vLLM's class is chosen by it. vLLM itself
# knows the class of the other types where a file leaves it out.
_ARCHITECTURES: Final = {
    "glm4_moe": "Glm4MoeForCausalLM",
    "gemma3": "Gemma3ForConditionalGeneration",
    "gemma3_text": "Gemma3ForCausalLM",
    "llama4": "Llama4ForConditionalGeneration",
    "qwen3_5": "Qwen3_5ForConditionalGeneration",
    "qwen3_5_moe": "Qwen3_5MoeForConditionalGeneration",
    "kimi_k2": "DeepseekV3ForCausalLM",
    "kimi_k25": "KimiK25ForConditionalGeneration",
    "deepseek_v32": "DeepseekV32ForCausalLM",
}
# What vLLM's classes read beside the cache, of models whose file here is short of it.
_LEFT_OUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "longcat_flash": {"zero_expert_type": "identity"},
    "deepseek_v2": {"n_group": 1, "topk_group": 1, "moe_intermediate_size": 1408},
    "gemma3": {
        "vision_config": {
            "model_type": "siglip_vision_model",
            "hidden_size": 1152,
            "intermediate_size": 4304,
            "num_attention_heads": 16,
        }
    },
    "deepseek_v32": {"index_topk": 2048, "index_n_heads": 64},
    "minimax_m2": {"rotary_dim": 64, "scoring_func": "sigmoid"},
}


@dataclass(frozen=True, slots=True)
class Case:
    """One model.

    Attributes:
        name: The catalogue's entry, the folder, or the file in rows.
        files: Its files by name, parsed: config.json or params.json, and what lies beside it.
        engines: What is asked about it; empty for what is asked about every model.
    """

    name: str
    files: Mapping[str, Mapping[str, Any]]
    engines: tuple[Combination, ...] = ()

    @property
    def combinations(self) -> list[Combination]:
        """What is asked about it, those of the same split together."""
        return list(self.engines or combinations(self.config))

    @property
    def config(self) -> Mapping[str, Any]:
        """The file that a plan reads first."""
        return self.files.get("config.json") or self.files["params.json"]

    @property
    def key(self) -> str:
        """The same for models whose files say the same."""
        asked = [engine.as_data() for engine in self.engines]
        said = json.dumps([self.files, asked] if asked else self.files, sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def cases() -> Iterator[Case]:
    """All of them but the library's: the folders first, then the rows, then the catalogue."""
    for folder in sorted(MODELS.iterdir()):
        yield Case(
            folder.name, {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
        )
    yield from rows()
    for name, entry in entries().items():
        yield Case(f"catalogue: {name}", {"config.json": entry["config"]})


def rows() -> Iterator[Case]:
    """Small models that say what few do, each with the engines that it is about."""
    for path in sorted(_ROWS.glob("*.json")):
        row = json.loads(path.read_text())
        drafts = {f"{DRAFTS}{name}/config.json": draft for name, draft in row.get("drafts", {}).items()}
        engines = tuple(
            Combination(**engine | {"arguments": tuple(engine.get("arguments", ()))})
            for engine in row["engines"]
        )
        yield Case(f"{ROW}{path.stem}", {"config.json": row["model"]} | drafts, engines)


def vllm_arguments(folder: Path) -> dict[str, Any]:
    """What the engine is told beside the model's folder."""
    mistral = (folder / "params.json").is_file()
    return {"model": str(folder)} | ({"config_format": "mistral"} if mistral else {})


def write_for_vllm(case: Case, folder: Path) -> Path:
    """The case's files as vLLM expects them, with what it reads beside the cache.

    Returns:
        The folder, below `folder`.
    """
    target = folder / case.name.replace("/", "--").replace(": ", "-")
    target.mkdir(parents=True)
    write(case.files if case.engines else _files(case), target)
    return target


def write(files: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """These files, below a folder that is there."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))


def _files(case: Case) -> dict[str, Any]:
    files: dict[str, Any] = {name: dict(content) for name, content in case.files.items()}
    config = files.get("config.json", {})
    if "n_kv_heads" in config and "model_type" not in config:
        return {"params.json": config}
    model_type = config.get("model_type", "")
    if model_type == "minimax_m3":  # vLLM has the type under which the model was published
        text = config | {"model_type": "minimax_m3_text"}
        del text["architectures"]
        config = {
            "model_type": "minimax_m3_vl",
            "architectures": ["MiniMaxM3SparseForCausalLM"],
            "text_config": text,
        }
    config = dict(_LEFT_OUT.get(model_type, {})) | config
    if model_type in _ARCHITECTURES:
        config.setdefault("architectures", [_ARCHITECTURES[model_type]])
    quantized = config.get("quantization_config", {}).get("quantization")
    if quantized is not None:
        quantized = {"exclude_modules": [], "group_size": 16, **quantized}
        config["quantization_config"] = config["quantization_config"] | {"quantization": quantized}
    files["config.json"] = config
    if "hf_quant_config.json" in files:  # the names of modules, hundreds of them
        quantization = {"exclude_modules": [], **files["hf_quant_config.json"]["quantization"]}
        files["hf_quant_config.json"] = files["hf_quant_config.json"] | {"quantization": quantization}
    return files
