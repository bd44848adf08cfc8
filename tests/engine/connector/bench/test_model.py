"""Weights drawn in place: large enough that the KV cache shows in an answer, and the same every time."""

import pytest
import torch

from kvtier_connector.bench import model as bench_model
from kvtier_connector.bench.model import draw, weights_deviation

pytestmark = pytest.mark.engine
SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 768,
    "vocab_size": 4096,
    "max_position_embeddings": 512,
}


def parameters() -> dict[str, torch.Tensor]:
    near_zero = 1e-3
    return {
        "embed_tokens.weight": torch.full((2000, 256), near_zero, dtype=torch.bfloat16),
        "norm.weight": torch.full((256,), near_zero, dtype=torch.bfloat16),
        "q_proj.weight": torch.full((256, 512), near_zero).t(),
        "q_proj.bias": torch.full((256,), near_zero),
        "packed": torch.full((4, 4), 3, dtype=torch.uint8),
    }


def test_matrices_are_normal_norms_one_biases_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_model, "_PART_ELEMENTS", 100 * 256)
    drawn = parameters()
    assert draw(drawn.items(), 1 / 16) == 2
    for name in ("embed_tokens.weight", "q_proj.weight"):
        assert float(drawn[name].float().std()) == pytest.approx(1 / 16, rel=0.02)
        assert float(drawn[name].float().mean()) == pytest.approx(0, abs=0.001)
    assert drawn["embed_tokens.weight"].unique(dim=0).shape[0] == 2000, "rows are repeated"
    assert set(drawn["norm.weight"].tolist()) == {1.0}
    assert set(drawn["q_proj.bias"].tolist()) == {0.0}
    assert set(drawn["packed"].flatten().tolist()) == {3}


def test_they_are_the_same_every_time() -> None:
    first, second = parameters(), parameters()
    draw(first.items(), 0.1)
    draw(second.items(), 0.1)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_an_answer_hangs_on_more_than_the_last_tokens() -> None:
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415 - takes seconds

    config = AutoConfig.for_model("qwen3", **SMALL)
    model = AutoModelForCausalLM.from_config(config).eval()
    draw(model.named_parameters(), weights_deviation(config.hidden_size))
    numbers = torch.Generator().manual_seed(1)
    prompts = torch.randint(10, 1000, (8, 256), generator=numbers)
    prompts[:, -8:] = prompts[0, -8:]
    with torch.no_grad():
        answers = model(prompts).logits[:, -1].argmax(dim=-1)
    assert len(set(answers.tolist())) >= 7
