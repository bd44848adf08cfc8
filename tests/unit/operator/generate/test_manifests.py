from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[4]
MANIFESTS = ROOT / "manifests"


@pytest.mark.parametrize(
    "folder",
    sorted(path.parent for path in MANIFESTS.rglob("kustomization.yaml")),
    ids=lambda path: path.name,
)
def test_a_kustomization_names_every_file_beside_it(folder: Path) -> None:
    named = yaml.safe_load((folder / "kustomization.yaml").read_text()).get("resources", [])
    files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in named if name.endswith(".yaml")} == files
