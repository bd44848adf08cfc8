"""What engines of other kinds need: adapters, a model that sees, and steps that are scheduled ahead."""

import json
from pathlib import Path
from typing import Any

import pytest

VISION = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
PIXELS = 112
PATCH_PIXELS = 14
IMAGE_TOKENS = (PIXELS // PATCH_PIXELS) ** 2
IMAGE_ID = 511
_RANK = 8


class _NoTransfers:
    """Stands for what CUDA has and a CPU does without."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def wait_stream(self, other: object) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def schedule_ahead(patch: pytest.MonkeyPatch) -> None:
    """Have engines in this process schedule a step before they know the last one's tokens, as on GPUs.

    On a CPU vLLM turns that off whatever is asked for (platforms/cpu.py); its scheduler, the queue of batches
    and the model runner work all the same.
    """
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.platforms import current_platform  # noqa: PLC0415 - takes seconds

    platform = type(current_platform)
    configure = platform.check_and_update_config

    def configured(config: Any) -> None:  # noqa: ANN401 - vLLM publishes no types
        configure(config)
        config.scheduler_config.async_scheduling = True

    patch.setattr(platform, "check_and_update_config", staticmethod(configured))
    for name in ("Event", "Stream", "stream", "current_stream"):
        patch.setattr(torch.cuda, name, _NoTransfers)


def with_tokenizer(patch: pytest.MonkeyPatch) -> None:
    """Have engines load the model's tokenizer, without which vLLM processes no images."""
    import vllm  # noqa: PLC0415 - takes seconds

    start = vllm.LLM

    def started(model: str, **settings: object) -> Any:  # noqa: ANN401 - vLLM publishes no types
        return start(model, **(settings | {"skip_tokenizer_init": False}))

    patch.setattr(vllm, "LLM", started)


def write_adapter(folder: Path, seed: int, *, hidden_size: int, layers: int) -> Path:
    """Write a LoRA adapter for keys and values, large enough to show in every token."""
    import torch  # noqa: PLC0415 - takes seconds
    from safetensors.torch import save_file  # noqa: PLC0415 - takes seconds

    chance = torch.Generator().manual_seed(seed)
    names = ("k_proj", "v_proj")
    weights = {}
    for layer in range(layers):
        for name in names:
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            weights[f"{prefix}.lora_A.weight"] = torch.randn(_RANK, hidden_size, generator=chance)
            weights[f"{prefix}.lora_B.weight"] = torch.randn(hidden_size, _RANK, generator=chance)
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": _RANK, "lora_alpha": _RANK, "target_modules": names}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def write_llava(folder: Path, text: dict[str, object]) -> Path:
    """Write a LLaVA with random weights and what it needs to process images; a token is a word."""
    from safetensors.torch import load_file, save_file  # noqa: PLC0415 - takes seconds
    from tokenizers import Tokenizer, models  # noqa: PLC0415 - takes seconds
    from transformers import (  # noqa: PLC0415 - takes seconds
        CLIPImageProcessor,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
        set_seed,
    )
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

    disable_progress_bar()
    spread = {"initializer_range": VISION["hidden_size"] ** -0.5}  # as in the bench's model
    sight = {"model_type": "clip_vision_model", "image_size": PIXELS, "patch_size": PATCH_PIXELS}
    config = LlavaConfig(
        text_config=text | {"model_type": "llama"} | spread,
        vision_config=VISION | sight | spread,
        image_token_index=IMAGE_ID,
        image_seq_length=IMAGE_TOKENS,
        vision_feature_layer=-1,
    )
    set_seed(0)
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    file = folder / "model.safetensors"
    # Transformers 5 has dropped a part of the names that vLLM 0.32 reads.
    weights = {
        name.replace("vision_tower.", "vision_tower.vision_model."): tensor
        for name, tensor in load_file(file).items()
    }
    save_file(weights, file, {"format": "pt"})
    words = {f"word{number}": number for number in range(IMAGE_ID)} | {"<image>": IMAGE_ID}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, "word0")),
        additional_special_tokens=["<image>"],
    )
    size = {"height": PIXELS, "width": PIXELS}
    LlavaProcessor(
        CLIPImageProcessor(size=size, crop_size=size),
        tokenizer,
        patch_size=PATCH_PIXELS,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    return folder
