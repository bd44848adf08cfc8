"""What an upgrade from the last release changes is known, and said in docs/operations/upgrades.md.

Whoever changes what pods are given restarts every engine at the next upgrade: that is worth a line there.
"""

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from tests.cases.releases.differences import Change, changed_images, changes, documented_changes
from tests.cases.releases.kept import CONTENTS, Document, KeptRelease, Key, key_of, last_release
from tests.cases.releases.present import (
    LEFT_OUT,
    contents,
    files_in,
    older_images,
    present_objects,
    present_plan,
)

from kvtier_operator.api.schema.crd import crd

_AGAIN = "it is not out yet: python -m tests.cases.releases.write"
_SAY = "say so, and why, in the table of docs/operations/upgrades.md"


@pytest.fixture(scope="module")
def release() -> KeptRelease:
    return last_release()


def advice(release: KeptRelease) -> str:
    """What to do about a difference that is meant."""
    return f"since {release.version}; {_SAY if release.is_out else _AGAIN}"


def test_objects_differ_as_the_page_says_and_in_nothing_else(release: KeptRelease) -> None:
    must_be_said(release, release.objects())


def must_be_said(release: KeptRelease, before: dict[Key, Document]) -> None:
    """Fail unless what is made now differs from these objects as the page says."""
    images = changed_images(json.loads(release.text(CONTENTS)), contents(), older_images())
    found = changes(before, present_objects(release.resources())) | images
    said = documented_changes(release.version)
    restarting = sorted(each.field for each in found - said if each.restarts_engines)
    assert not restarting, f"every engine restarts for {restarting} {advice(release)}"
    assert found == said, advice(release)


def test_its_resources_are_accepted(release: KeptRelease) -> None:
    assert [
        resource["metadata"]["name"] for resource in release.resources() if present_plan(resource).rejected
    ] == []


def test_its_fields_are_still_there(release: KeptRelease) -> None:
    """SUPPORT.md: a field is not given another meaning, and one that goes is read for two minors more."""
    before, now = _fields(release.crd()), _fields(crd())
    assert {path for path in before if not _takes(now.get(path), before[path])} == set(), advice(release)


def test_stored_resources_need_no_migration(release: KeptRelease) -> None:
    stored = [
        [version["name"] for version in definition["spec"]["versions"] if version["storage"]]
        for definition in (release.crd(), crd())
    ]
    assert stored[0] == stored[1] == ["v1alpha1"]


def test_each_backend_is_among_its_resources(release: KeptRelease) -> None:
    backends = {resource["spec"].get("backend", "KVTier") for resource in release.resources()}
    assert backends == {"KVTier", "Native", "LMCache", "LMCacheMP"}


# ---- that a difference is seen ----


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"image": "other/engine:1"}, ["spec.template.spec.containers[engine].image"]),
        ({"args": ["--other"]}, ["spec.template.spec.containers[engine].args"]),
        (
            {"env": [{"name": "NEW", "value": "1"}, {"name": "OLD", "value": "2"}]},
            [
                "spec.template.spec.containers[engine].env[NEW]",
                "spec.template.spec.containers[engine].env[OLD].value",
            ],
        ),
    ],
    ids=str,
)
def test_a_difference_is_named_by_its_field(change: dict[str, Any], fields: list[str]) -> None:
    before = _deployment({"env": [{"name": "OLD", "value": "1"}]})
    now = deepcopy(before)
    now["spec"]["template"]["spec"]["containers"][0] |= change
    found = sorted(changes({key_of(before): before}, {key_of(now): now}))
    assert found == [Change("engine", "Deployment", field) for field in fields]
    assert all(each.restarts_engines for each in found)


@pytest.mark.parametrize("image", ["connector", "doctor"])
def test_what_an_image_is_compared_without_it_does_not_import(image: str) -> None:
    """Otherwise a change there would not reach engines, and nobody would know."""
    parts = "|".join(sorted(name.removesuffix(".py") for name in LEFT_OUT if name != "bench"))
    imports = re.compile(rf"^\s*(?:from|import) kvtier_common\.(?:{parts})\b", re.MULTILINE)
    files = [file for file in files_in(image) if file.suffix == ".py"]
    assert len(files) > 5
    assert [file for file in files if imports.search(file.read_text(encoding="utf-8"))] == []


def test_an_older_image_whose_sources_changed_is_a_difference() -> None:
    """Engines would go without the change."""
    before, now = {"connector": "a", "doctor": "b"}, {"connector": "c", "doctor": "b"}
    assert changed_images(before, now, {"connector", "doctor"}) == {Change("connector", "Image", "contents")}
    assert changed_images(before, now, {"doctor"}) == set()


def test_an_object_that_comes_or_goes_is_a_difference() -> None:
    made = _deployment({})
    for before, now in (({}, {key_of(made): made}), ({key_of(made): made}, {})):
        assert changes(before, now) == {Change("engine", "Deployment", "all")}


def test_a_rendered_object_that_is_changed_is_not_as_the_page_says(release: KeptRelease) -> None:
    kept = release.objects()
    engine = next(each for each in kept.values() if key_of(each) == ("Deployment", "minimal-engine"))
    engine["spec"]["template"]["spec"]["containers"][0]["image"] = "other/engine:1"
    with pytest.raises(
        AssertionError, match=r"every engine restarts for \['spec\.template\.spec\.containers"
    ):
        must_be_said(release, kept)


def _deployment(container: dict[str, Any]) -> Document:
    labels = {"app.kubernetes.io/component": "engine"}
    pod = {
        "spec": {"containers": [{"name": "engine", "image": "engine:1", "args": [], "env": []} | container]}
    }
    return {
        "kind": "Deployment",
        "metadata": {"name": "a-engine", "labels": labels},
        "spec": {"template": pod},
    }


def _fields(definition: Document) -> dict[str, dict[str, Any]]:
    """Of all fields of a CRD, by path, what may be written there and what it is when nothing is."""
    (version,) = definition["spec"]["versions"]
    found = dict[str, dict[str, Any]]()
    todo = [("", version["schema"]["openAPIV3Schema"])]
    while todo:
        path, schema = todo.pop()
        found[path] = {name: schema.get(name) for name in ("type", "format", "default", "enum")}
        todo += [(f"{path}.{name}", field) for name, field in schema.get("properties", {}).items()]
        todo += [
            (f"{path}[]", schema[name])
            for name in ("items", "additionalProperties")
            if isinstance(schema.get(name), dict)
        ]
    return found


def _takes(now: dict[str, Any] | None, before: dict[str, Any]) -> bool:
    """Whether a field takes what it took, and is the same where nothing is written."""
    if now is None or any(now[key] != before[key] for key in ("type", "format", "default")):
        return False
    return now["enum"] is None or (before["enum"] is not None and {*before["enum"]} <= {*now["enum"]})
