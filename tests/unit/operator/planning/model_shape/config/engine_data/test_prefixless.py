"""Models of which vLLM caches no prefixes are refused in one line."""

from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta"}, "architectures"),  # bge-m3
        ({"architectures": ["BertForMaskedLM"]}, "architectures"),
        ({"architectures": ["ElectraForMaskedLM"]}, "architectures"),  # vLLM's own has no table of these
        ({"architectures": ["LlamaBidirectionalModel"]}, "architectures"),
        ({"architectures": ["Qwen2ForProcessRewardModel"]}, "architectures"),  # pools steps
        # the Transformers library's encoders
        ({"architectures": ["AlbertModel"], "model_type": "albert"}, "architectures"),
        ({"architectures": ["EuroBertModel"], "model_type": "eurobert"}, "architectures"),
        (
            {"architectures": ["DebertaV2ForSequenceClassification"], "model_type": "deberta-v2"},
            "architectures",
        ),
        ({"architectures": ["JinaEmbeddingsV5Model"], "is_decoder": False}, "is_decoder"),
        (
            {"architectures": ["Gemma3TextModel"], "use_bidirectional_attention": True},
            "use_bidirectional_attention",
        ),
        ({"architectures": ["Qwen2Model"], "is_causal": False}, "is_causal"),
        ({"architectures": ["OneModel"], "is_causal": False, "text_config": BASE}, "is_causal"),
        (
            {"architectures": ["WhisperForConditionalGeneration"], "is_encoder_decoder": True},
            "is_encoder_decoder",
        ),
    ],
)
def test_refused(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        shape_from_config(BASE | config, "config.json")
    [line] = str(refused.value).splitlines()
    assert line.startswith(f"config.json: {field}: ")
    assert line.endswith("a tier has nothing to keep; serve it without a KVCacheTier")


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLM"]},
        {"architectures": ["Qwen2Model"]},  # an embedding of the last token caches prefixes
        {"architectures": ["Gemma3TextModel"], "use_bidirectional_attention": False},
        {"architectures": ["Gemma4ForConditionalGeneration"], "use_bidirectional_attention": "vision"},
        {"architectures": ["JinaEmbeddingsV5Model"]},
        {"architectures": ["Qwen2ForRewardModel"]},
        {"architectures": ["RemBertForCausalLM"], "model_type": "rembert", "is_decoder": True},
        {"architectures": None},
        {},
    ],
)
def test_served(config: dict[str, Any]) -> None:
    assert shape_from_config(BASE | config, "config.json").groups
