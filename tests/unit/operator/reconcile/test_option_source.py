"""A wrong option of the operator, as whoever set it knows it."""

import pytest
from click.testing import CliRunner

from kvtier_operator.reconcile.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ([], {"KVTIER_POLICY": "zz"}, "KVTIER_POLICY (in the chart operator.policy): cannot be read as JSON"),
        ([], {"KVTIER_POLICY": ""}, "KVTIER_POLICY (in the chart operator.policy): cannot be read as JSON"),
        ([], {"KVTIER_POLICY": "[]"}, "KVTIER_POLICY (in the chart operator.policy): not a mapping"),
        (
            [],
            {"KVTIER_POLICY": '{"hostPath":["relative/x"]}'},
            "KVTIER_POLICY (in the chart operator.policy): hostPath[0]: write a folder's whole path",
        ),
        (["--policy", "zz"], {"KVTIER_POLICY": "{}"}, "--policy: cannot be read as JSON"),
        (["--policy", ""], {}, "--policy: cannot be read as JSON"),
        ([], {"KVTIER_IMAGES": "engin=a/b:1"}, "KVTIER_IMAGES (in the chart images): 'engin' is none of "),
        (["--image", "engin=a/b:1"], {}, "--image: 'engin' is none of "),
        ([], {"KVTIER_IMAGE_REGISTRY": "a b"}, "KVTIER_IMAGE_REGISTRY (in the chart global.imageRegistry): "),
        ([], {"KVTIER_REPOSITORY": "a b"}, "KVTIER_REPOSITORY (in the chart image.repository): 'a b'"),
        (
            [],
            {"KVTIER_IMAGE_PULL_SECRETS": "A_"},
            "KVTIER_IMAGE_PULL_SECRETS (in the chart global.imagePullSecrets): 'A_'",
        ),
    ],
)
def test_the_line_names_what_was_set(arguments: list[str], environment: dict[str, str], said: str) -> None:
    result = CliRunner().invoke(main, arguments, env={"KVTIER_POLICY": None, **environment})
    assert result.exit_code == 1
    assert result.output.startswith(f"kvtier-operator: {said}")
    assert len(result.output.splitlines()) == 1
