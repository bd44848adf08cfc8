"""A stranger: from what `make publish` left in a registry to a served model, on a node that has no image."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.api.commands import Command, command
from tests.cluster.harness.api.custom_resources import install
from tests.cluster.harness.api.settled import settle
from tests.cluster.harness.images.buildah import as_oci
from tests.cluster.harness.images.engines import SMALL_MODEL, engine_mounts, model_environment, model_geometry
from tests.cluster.harness.images.kvtier import (
    connector_archive,
    envoy_archive,
    operator_archive,
    picker_archive,
    vllm_archive,
)
from tests.cluster.harness.images.registry import Registry, running_registry
from tests.cluster.harness.node.node import RealNode
from tests.cluster.harness.operator.places import ROOT, SYSTEM
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.programs.tools import Say, program
from tests.cluster.harness.providers.fixtures import made, need
from tests.cluster.harness.providers.provider import Ability, Provider
from tests.picker.harness.client import get, post
from tests.unit.docs.pages import fenced_blocks

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.planning.envoy.bootstrap import READY_PATH
from kvtier_release.oci import image_digest

IMAGES = {"operator": operator_archive, "picker": picker_archive, "connector": connector_archive}
# Images of others, as the chart calls them, and their repositories.
MIRRORED = {
    "envoy": (envoy_archive, "envoyproxy/envoy"),
    "vllmCpu": (vllm_archive, "vllm/vllm-openai-cpu"),
}
# What a machine without a GPU and a network has to say besides.
WITHOUT_GPU = {
    "device": "cpu",
    "tensorParallelSize": 1,
    "blockSize": 32,
    "maxModelLen": 2048,
    "kvCacheMemory": "32Mi",
    "extraArgs": ["--enforce-eager", "--dtype", "float32"],
    "env": [*model_environment(), {"name": "OMP_NUM_THREADS", "value": "1"}],
}


@dataclass(frozen=True, slots=True)
class Stranger:
    """Somebody with a cluster, kubectl and helm, the name of a registry, and images of others in it."""

    kubectl: Command
    helm: Command
    registry: str
    mirrored: Mapping[str, str]

    def url(self, service: str) -> str:
        """Of a Service, from this machine."""
        found = self.kubectl.json("get", "service", service)["spec"]
        return f"http://{found['clusterIP']}:{found['ports'][0]['port']}"


@contextmanager
def published(folder: Path, say: Say) -> Iterator[Registry]:
    """A registry with a release of this checkout."""
    archives = folder / "archives"
    archives.mkdir()
    for name, archive in IMAGES.items():
        as_oci(archive(say), archives / f"{name}.tar", say)
    with running_registry(folder, say) as registry:
        at = ("--registry", registry.name, "--dist", folder / "dist")
        chosen = [part for name in IMAGES for part in ("--image", name)]
        _release(["make", *at, "--archives", archives, *chosen], say)
        _release(["publish", *at], say)
        yield registry


def mirrored_images(registry: Registry, folder: Path, say: Say) -> dict[str, str]:
    """Copies images there that are not kvtier's to publish; returns their references by digest."""
    references = {}
    for name, (made_archive, path) in MIRRORED.items():
        archive = folder / f"{name}.tar"
        as_oci(made_archive(say), archive, say)
        digest, repository = image_digest(archive), f"{registry.name}/{path}"
        oras = program("oras", say)
        _run([oras, "cp", "--from-oci-layout", f"{archive}@{digest}", f"{repository}:mirrored"])
        references[name] = f"{repository}@{digest}"
    return references


def _release(arguments: Sequence[str | Path], say: Say) -> None:
    say(f"kvtier_release {arguments[0]}")
    path = os.pathsep.join([str(program("oras", say).parent), os.environ["PATH"]])
    given = {"SOURCE_DATE_EPOCH": "1790000000", **os.environ, "PATH": path}
    _run([sys.executable, "-m", "kvtier_release", *arguments], given)


def _run(typed: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        typed, env=environment, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def stranger(provider: Provider, say: Say, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    need(provider, Ability.NODE)
    folder = tmp_path_factory.mktemp("release")
    with (
        published(folder, say) as registry,
        made(provider.node(say, hugepages=0, images=[], mounts=engine_mounts(say))) as node,
    ):
        if not isinstance(node, RealNode):
            pytest.skip(f"{provider.name}: its nodes have no registry on their loopback")
        mirrored = mirrored_images(registry, folder, say)
        beside = registry.start_in(node.sandbox)
        kubeconfig = node.cluster.kubeconfig(folder)
        kubectl, helm = (command(name, kubeconfig, folder, say) for name in ("kubectl", "helm"))
        with node.cluster.client() as api:
            for definition in published_crds():
                install(api, definition)
        yield Stranger(kubectl, helm, registry.name, mirrored)
        beside.kill()


def resource() -> dict[str, Any]:
    """README's, for a model and a machine that are here."""
    [text] = fenced_blocks(ROOT / "README.md", "yaml")
    document: dict[str, Any] = yaml.safe_load(text)
    spec = document["spec"]
    spec["model"] = {"name": SMALL_MODEL.name, "geometry": model_geometry(SMALL_MODEL.shape)}
    del spec["engine"]["gpu"]
    spec["engine"] |= WITHOUT_GPU
    spec["tiers"]["cpu"] |= {"capacity": "128Mi"}
    spec["router"] |= {"flavor": "builtin"}
    spec["router"]["gateway"]["standalone"] = {"models": [{"name": "kvtier/other", "resource": "other"}]}
    return document


# Images are built and pulled, and an engine starts, beside a cluster on a few cores.
@pytest.mark.long
def test_from_the_registry_to_a_served_model(stranger: Stranger) -> None:
    chart = f"oci://{stranger.registry}/kvtier/charts/tiered-prefix-cache"
    at = ("--namespace", SYSTEM)
    which = ("--version", KVTIER_VERSION, "--plain-http")
    mirror = ("--set", ",".join(f"images.{name}={image}" for name, image in stranger.mirrored.items()))
    stranger.helm(
        *("install", "kvtier", chart, *which, *at, *mirror, "--create-namespace", "--wait"),
        *("--timeout", "300s"),
    )
    said = stranger.helm("test", "kvtier", *at, "--logs")
    assert said.count("ok    ") == 3, said
    of_test = stranger.kubectl("get", "serviceaccounts,roles,rolebindings", "--output=name", *at)
    assert "-test" not in of_test

    document = resource()
    name = document["metadata"]["name"]
    stranger.kubectl("apply", "--filename", "-", stdin=json.dumps(document))
    settle(stranger.kubectl, name, 1)
    body = json.dumps({"model": SMALL_MODEL.name, "prompt": "lorem ipsum", "max_tokens": 4}).encode()
    answer = post(f"{stranger.url(f'{name}-engine')}/v1/completions", body)
    assert answer.status == 200, answer.body
    # without a cluster DNS here it finds no engine, and is ready once it has given up
    gateway = stranger.url(f"{name}-gateway")
    assert get(gateway + READY_PATH).status == 200
    # it says so once the container beside it has read the model; without that, nothing is said
    assert post(f"{gateway}/v1/completions", body).body == b"no healthy upstream"

    pods = stranger.kubectl.json("get", "pods", "--all-namespaces")["items"]
    images = {
        box["image"]
        for pod in pods
        for box in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
    }
    assert images >= {*stranger.mirrored.values()}
    published_images = images - {*stranger.mirrored.values()}
    assert len(published_images) == len(IMAGES)
    assert {image.partition("@sha256:")[0] for image in published_images} == {
        f"{stranger.registry}/kvtier/{image}" for image in IMAGES
    }
