import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.unit.release.checkout import CREATED_S, DIGEST, release

from kvtier_common.version import KVTIER_VERSION
from kvtier_operator.planning.images import ImageName, image_source
from kvtier_release import release as module
from kvtier_release.commands import ReleaseError
from kvtier_release.make import Wanted, make_release
from kvtier_release.release import FILE, Release


def test_an_image_that_was_built_is_named_by_its_digest_another_by_its_tag() -> None:
    assert release().references() == {
        "operator": f"registry.example/team/kvtier/operator@{DIGEST['operator']}",
        "doctor": f"registry.example/team/kvtier/operator@{DIGEST['operator']}",
        "connector": f"registry.example/team/kvtier/connector:{KVTIER_VERSION}",
        "pickerBuiltin": f"registry.example/team/kvtier/picker@{DIGEST['picker']}",
    }


def test_the_operator_takes_what_it_is_told() -> None:
    source = image_source(references=release().installed_images().split(","))
    assert source.references[ImageName.DOCTOR] == release().references()["operator"]
    assert set(source.references) == {*release().images} - {"operator"}


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(release().text())
    assert Release.read(tmp_path) == release()


def test_a_folder_without_one_says_so(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="has no release: run make release"):
        Release.read(tmp_path)


@pytest.mark.parametrize(
    ("constant", "image"), [("DOCTOR_VERSION", "doctor"), ("CONNECTOR_VERSION", "connector")]
)
def test_an_earlier_image_is_named_by_the_digest_that_it_had(
    constant: str, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every upgrade would restart all engines."""
    now, before = (
        release(),
        replace(release(), images={name: f"{name}@sha256:0" for name in release().images}),
    )
    monkeypatch.setattr(module, constant, "0.0.9")
    with pytest.raises(ReleaseError, match=rf"{image} is release 0\.0\.9's: give --earlier"):
        release()
    found = Release.of_digests("registry.example/team", CREATED_S, DIGEST, before)
    assert found.images == {**now.images, image: f"{image}@sha256:0"}
    assert Release.of_digests("r", CREATED_S, {}).images[image].endswith(":0.0.9")


def test_a_release_before_the_image_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = replace(release(), version="0.0.9")
    monkeypatch.setattr(module, "DOCTOR_VERSION", "0.0.10")
    with pytest.raises(ReleaseError, match=r"doctor is release 0\.0\.10's, and --earlier is of 0\.0\.9"):
        Release.of_digests("registry.example/team", CREATED_S, DIGEST, before)


def test_that_an_earlier_release_is_needed_is_said_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "CONNECTOR_VERSION", "0.0.9")
    with pytest.raises(ReleaseError, match="give --earlier"):
        make_release(tmp_path, tmp_path / "dist", Wanted("registry.example/team", ["operator"]))
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("content", [b"latest", b"\xff", b"[]"])
def test_a_release_before_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    (file := tmp_path / "README.md").write_bytes(content)
    with pytest.raises(ReleaseError, match=f"^{file} is no release.json: give that of the release before"):
        Release.earlier(file)


@pytest.mark.parametrize(
    "wrong",
    [
        {"registry": 5},
        {"created_s": ""},
        {"images": []},
        {"images": {}},
        {"images": {"operator": 5}},
        {"version": 5},
        {"version": "latest"},
        {"unknown": 1},
    ],
)
def test_a_release_with_a_field_that_is_none_says_so(wrong: dict[str, object]) -> None:
    with pytest.raises(ReleaseError, match=r"no release: ."):
        Release.parse(json.dumps(asdict(release()) | wrong))


@pytest.mark.parametrize("text", ['{"version": "0.1.0"}', "[]", "", b"\xff\xfe", b"\x80"])
def test_what_is_no_release_says_so(text: str | bytes) -> None:
    with pytest.raises(ReleaseError, match="no release: "):
        Release.parse(text)
