"""defaults.json is what the installed transformers and vLLM fill in."""

import json

import pytest

from kvtier_operator.generate.engine_data.defaults import DEFAULTS, model_defaults
from kvtier_operator.generate.files import ROOT

# Types that the newer minor has another class for, or none.
_READ_OTHERWISE = {"medusa", "mlp_speculator", "muse_glimmer_assistant", "muse_glimmer_text", "step3p5"}

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.long  # every class of configuration is made twice
def test_the_file_is_up_to_date() -> None:
    written = (ROOT / DEFAULTS).read_text(encoding="utf-8")
    text = model_defaults()
    assert text is not None
    import vllm  # noqa: PLC0415 - takes seconds

    if vllm.__version__.startswith("0.32"):
        assert text == written
    else:
        now, then = json.loads(text)["fields"], json.loads(written)["fields"]
        assert {name for name in then if now.get(name) != then[name]} == _READ_OTHERWISE


@pytest.mark.parametrize(
    ("model_type", "fields"),
    [
        ("gemma3_text", {"head_dim": 256, "num_key_value_heads": 4}),
        ("gemma3", {"text_config": {"model_type": "gemma3_text"}}),
        ("llava", {"text_config": {"model_type": "llama"}}),
        ("nemotron_h", {"mamba_ssm_cache_dtype": "float32"}),
    ],
)
def test_what_published_files_leave_out(model_type: str, fields: dict[str, object]) -> None:
    written = json.loads((ROOT / DEFAULTS).read_text(encoding="utf-8"))["fields"][model_type]
    assert {name: written.get(name) for name in fields} == fields


def test_what_a_class_works_out_is_no_default() -> None:
    written = json.loads((ROOT / DEFAULTS).read_text(encoding="utf-8"))["fields"]
    assert "head_dim" not in written["llama"]  # hidden_size / num_attention_heads
    assert "num_key_value_heads" not in written["llama"]  # num_attention_heads


def test_patterns_of_layers() -> None:
    periods = json.loads((ROOT / DEFAULTS).read_text(encoding="utf-8"))["layer_periods"]
    assert periods["gemma3_text"] == {"period": ["sliding_attention"] * 5 + ["full_attention"]}
    assert periods["gpt_oss"] == {"period": ["sliding_attention", "full_attention"]}
    assert "llama" not in periods


def test_what_follows_from_a_parameter_that_is_no_field() -> None:
    written = json.loads((ROOT / DEFAULTS).read_text(encoding="utf-8"))
    assert "num_key_value_heads" not in written["fields"]["dbrx"]  # attn_config.kv_n_heads
    assert "head_dim" not in written["fields"]["deepseek_v2"]  # qk_rope_head_dim
    assert written["other_names"]["chatglm"]["max_position_embeddings"] == "seq_length"
