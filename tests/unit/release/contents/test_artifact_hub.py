import pytest
import yaml

from kvtier_release.installers import artifact_hub_text


@pytest.mark.parametrize("owner", ["", "a@example.com", "a: b # c"])
def test_it_says_what_is_known(owner: str) -> None:
    known = yaml.safe_load(artifact_hub_text("6c1c", owner))
    assert known["repositoryID"] == "6c1c"
    assert [each["email"] for each in known.get("owners", [])] == ([owner] if owner else [])


def test_what_is_not_known_it_leaves_open() -> None:
    text = artifact_hub_text("", "")
    assert text.startswith("# repositoryID")
    assert yaml.safe_load(text) is None
