import io
import json
import tarfile

import yaml
from tests.unit.release.checkout import ROOT, release

from kvtier_release.installers import chart_package
from kvtier_release.release import FILE

CHART = ROOT / "charts" / "tiered-prefix-cache"


def packaged() -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(chart_package(ROOT, release()))) as opened:
        read = {each.name: opened.extractfile(each) for each in opened}
        return {name: content.read() for name, content in read.items() if content}


def test_the_same_release_makes_the_same_bytes() -> None:
    assert chart_package(ROOT, release()) == chart_package(ROOT, release())


def test_it_is_the_checkout_s_chart_without_its_tests() -> None:
    of_checkout = {
        f"{CHART.name}/{path.relative_to(CHART)}": path.read_bytes()
        for path in CHART.rglob("*")
        if path.is_file() and path.parent.name != "ci"
    }
    own = {f"{CHART.name}/{name}" for name in ("Chart.yaml", FILE)}
    found = packaged()
    assert set(found) == set(of_checkout) | own
    assert {name: found[name] for name in of_checkout if name not in own} == {
        name: content for name, content in of_checkout.items() if name not in own
    }


def test_it_says_where_its_images_are() -> None:
    found = packaged()
    assert json.loads(found[f"{CHART.name}/{FILE}"])["images"] == release().images
    about = yaml.safe_load(found[f"{CHART.name}/Chart.yaml"])
    listed = yaml.safe_load(about.pop("annotations")["artifacthub.io/images"])
    assert {each["name"]: each["image"] for each in listed} == release().references()
    assert about == yaml.safe_load((CHART / "Chart.yaml").read_text())
