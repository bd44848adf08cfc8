import pytest
from tests.unit.release.checkout import CREATED_S
from tests.unit.release.sbom.validated import validated

from kvtier_release.sbom import Package, document

TWO = (Package("pypi", "", "a", "1", "MIT"), Package("deb", "debian", "b", "2:1.0-1", optional=True))


def test_packages_have_their_urls_and_whether_they_are_needed() -> None:
    found = validated(document("x", TWO, CREATED_S))
    assert {each["purl"]: each["scope"] for each in found["components"]} == {
        "pkg:pypi/a@1": "required",
        "pkg:deb/debian/b@2:1.0-1": "optional",
    }


def test_the_same_packages_make_the_same_document() -> None:
    assert document("x", TWO, CREATED_S) == document("x", reversed(TWO), CREATED_S)


@pytest.mark.parametrize(
    ("said", "has"),
    [
        ("MIT", {"license": {"id": "MIT"}}),
        ("MIT OR Apache-2.0", {"expression": "MIT OR Apache-2.0"}),
        ("BSD License", {"license": {"name": "BSD License"}}),
    ],
)
def test_a_licence_is_named_as_its_package_names_it(said: str, has: dict[str, object]) -> None:
    [component] = validated(document("x", [Package("pypi", "", "a", "1", said)], CREATED_S))["components"]
    assert component["licenses"] == [has]


@pytest.mark.parametrize("said", ["", "Permission is hereby granted\nto", "x" * 101])
def test_a_text_is_no_licence_s_name(said: str) -> None:
    [component] = validated(document("x", [Package("pypi", "", "a", "1", said)], CREATED_S))["components"]
    assert "licenses" not in component
