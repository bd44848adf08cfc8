import yaml
from tests.unit.release.checkout import ROOT, release

from kvtier_release.installers import install_text

BASE = ROOT / "manifests" / "base"


def test_it_is_the_manifests_with_the_release_s_images() -> None:
    found = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(install_text(release()))
    }
    base = {
        (each["kind"], each["metadata"]["name"]): each
        for path in BASE.glob("*.yaml")
        if path.name != "kustomization.yaml"
        for each in yaml.safe_load_all(path.read_text())
    }
    [name] = [key for key in base if key[0] == "Deployment"]
    [container] = found[name]["spec"]["template"]["spec"]["containers"]
    [of_base] = base[name]["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container.pop("env")}
    assert environment.pop("KVTIER_IMAGES") == release().installed_images()
    assert container.pop("image") == release().references()["operator"]
    assert environment.items() < {each["name"]: each["value"] for each in of_base.pop("env")}.items()
    del of_base["image"]
    assert found == base


def test_namespace_and_crd_come_first() -> None:
    kinds = [each["kind"] for each in yaml.safe_load_all(install_text(release()))]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
