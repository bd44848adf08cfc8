"""`kvtier plan --policy`: limits by themselves, or where the chart's values have them."""

import re
from pathlib import Path

import pytest

from kvtier_operator.cli.inputs.load import policy_file
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.base.owner_policy import OwnerPolicy

ROOT = Path(__file__).parents[5]


def _read(folder: Path, text: str) -> OwnerPolicy:
    path = folder / "limits.yaml"
    path.write_text(text, encoding="utf-8")
    return policy_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "hostPath: deny\nimages: [a/]\n",
        "operator: {policy: {hostPath: deny, images: [a/]}}",
        "crds: {keep: true}\noperator:\n  logFormat: plain\n  policy: {hostPath: deny, images: [a/]}\n",
    ],
)
def test_limits(tmp_path: Path, text: str) -> None:
    assert _read(tmp_path, text) == OwnerPolicy("deny", images=("a/",))


def test_no_limits(tmp_path: Path) -> None:
    assert _read(tmp_path, "{}") == _read(tmp_path, "operator: {policy: {}}") == OwnerPolicy()


def test_the_chart_s_own_values() -> None:
    assert policy_file(ROOT / "charts" / "tiered-prefix-cache" / "values.yaml") == OwnerPolicy()


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operations" / "rbac.md").read_text()
    [example] = re.findall(r"^```yaml\n(operator:\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert _read(tmp_path, example).foreign_gateways == ("edge/public",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a mapping with any of hostPath, "),
        ("null", "not a mapping with any of hostPath, "),
        ("[]", "not a mapping with any of hostPath, "),
        ("{}\n---\n{}\n", "2 documents; keep one"),
        (
            "hostPath: deny\nhostPath: allow\n",
            "not YAML: line 2, column 1: the key 'hostPath' is there twice",
        ),
        ("hostPath: [mnt]", "hostPath[0]: write a folder's whole path"),
        ("operator: {}", "operator: no policy in it; "),
        ("operator:", "operator: no policy in it; "),
        ("operator: {policy: }", "operator.policy: not a mapping with any of hostPath, "),
        ("operator: {policy: {hostNames: }}", "operator.policy.hostNames: write allow, deny or a list"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        _read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'limits.yaml'}: {said}")
    assert "\n" not in str(error.value)


def test_what_has_no_end_is_not_read() -> None:
    with pytest.raises(InvalidInputError, match=r"^/dev/zero: cannot be read: it is a pipe or a device"):
        policy_file(Path("/dev/zero"))
