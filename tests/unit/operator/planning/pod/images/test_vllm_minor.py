"""What an image's tag tells of vLLM."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.backends.engine_image import engine_minor
from kvtier_operator.planning.base.vllm_minor import vllm_minor
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.observed import Machine, Observed


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
    ],
)
def test_a_tag_of_vllms_own_image_tells(image: str, minor: int | None) -> None:
    assert vllm_minor(image) == minor


@pytest.mark.parametrize(
    ("fields", "images", "minor"),
    [
        ({}, {}, 32),
        ({"backend": "Native", "engine": {"device": "cpu"}}, {}, 32),
        ({"backend": "LMCache"}, {}, None),
        ({"engine": {"image": "vllm/vllm-openai:v0.33.0"}}, {}, 33),
        ({"engine": {"image": "r.example/team/engine:0.33.0"}}, {}, None),
        ({}, {"registry": "r.example:5000/mirror"}, 32),
        ({}, {"references": {"vllm": f"r.example/a/vllm-openai@sha256:{'0' * 64}"}}, None),
        ({}, {"references": {"vllm": "r.example/vllm-with-more:v0.33.0"}}, 33),
    ],
    ids=str,
)
def test_a_plan_without_an_image_is_of_the_default_image_s_minor(
    fields: dict[str, Any], images: dict[str, Any], minor: int | None
) -> None:
    observed = Observed(images=ImageSource(**images))
    assert engine_minor(resource(**fields).spec, observed) == minor


def test_a_local_run_takes_this_machines_vllm() -> None:
    assert engine_minor(resource().spec, Observed(machine=Machine())) is None
