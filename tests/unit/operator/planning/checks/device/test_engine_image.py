import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_connector.supported import TESTED_RELEASES
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS
from kvtier_operator.planning.checks.device import engine_image
from kvtier_operator.planning.images import ImageName, ImageSource
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import Outcome

DIGEST = "@sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("backend", "image", "outcome", "reason"),
    [
        ("KVTier", "vllm/vllm-openai:v0.33.0", REJECT, "ConnectorNotInImage"),
        ("KVTier", "docker.io/vllm/vllm-openai-cpu:latest", REJECT, "ConnectorNotInImage"),
        ("KVTier", f"vllm/vllm-openai{DIGEST}", REJECT, "ConnectorNotInImage"),
        ("KVTier", "vllm/vllm-openai:v0.31.0", REJECT, "ConnectorNotInImage"),
        ("KVTier", "lmcache/vllm-openai:v0.5.6", REJECT, "ConnectorNotInImage"),
        ("KVTier", "r.example:5000/vllm/vllm-openai:v0.33.0", WARN, "ConnectorMayNotBeInImage"),
        ("KVTier", "r.example/team/vllm-openai:v0.31.1", WARN, "VersionNotTested"),
        ("KVTier", "r.example/team/vllm:v0.33.0", PASS, "Passed"),
        ("KVTier", "r.example/kvtier/engine:0.1.0", PASS, "Passed"),
        ("KVTier", None, PASS, "Passed"),
        ("Native", "vllm/vllm-openai:v0.33.0", PASS, "Passed"),
        ("Native", "vllm/vllm-openai:v0.34.0", WARN, "VersionNotTested"),
        ("Native", "vllm/vllm-openai:latest", PASS, "Passed"),
        ("LMCache", "lmcache/vllm-openai:v0.5.6", PASS, "Passed"),
    ],
)
def test_what_the_name_of_an_image_tells(
    backend: str, image: str | None, outcome: Outcome, reason: str
) -> None:
    result = verdict(engine_image, resource(backend=backend, engine={"image": image} if image else {}))
    says(result, outcome, reason)
    if "Connector" in reason:
        says(result, outcome, reason, f"BASE_IMAGE={image}", "docs/development/images.md")
    assert result.field == "spec.engine.image"


def test_the_installations_own_image_is_looked_at() -> None:
    stock = ImageSource(references={ImageName.ENGINE: "vllm/vllm-openai:v0.33.0"})
    says(verdict(engine_image, resource(), Observed(images=stock)), REJECT, "ConnectorNotInImage")


def test_a_local_run_takes_no_image() -> None:
    one = resource(engine={"image": "vllm/vllm-openai:v0.33.0"})
    says(verdict(engine_image, one, on()), PASS, "NotLooked")


def test_the_minors_are_those_of_the_connector() -> None:
    assert tuple(TESTED_RELEASES) == tuple(f"0.{minor}" for minor in KNOWN_MINORS)
