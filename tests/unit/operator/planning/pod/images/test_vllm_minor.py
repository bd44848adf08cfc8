"""What an image's tag tells of vLLM."""

import pytest

from kvtier_operator.planning.base.vllm_minor import vllm_minor


@pytest.mark.parametrize(
    ("image", "minor"),
    [
        ("vllm/vllm-openai:v0.33.0", 33),
        ("registry.example:5000/mirror/vllm-openai:0.32.1-cu130", 32),
        ("vllm/vllm-openai-cpu:v0.33.0@sha256:" + "0" * 64, 33),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai@sha256:" + "0" * 64, None),
        ("lmcache/vllm-openai:v0.5.6", None),
        ("example/engine:v0.33.0", None),
        (None, None),
    ],
)
def test_a_tag_of_vllms_own_image_tells(image: str | None, minor: int | None) -> None:
    assert vllm_minor(image) == minor
