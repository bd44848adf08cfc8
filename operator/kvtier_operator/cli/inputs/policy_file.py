"""The file of `kvtier plan --policy`: what the cluster's owner lets resources ask for."""

from collections.abc import Mapping
from pathlib import Path

from kvtier_operator.cli.inputs.whole_file import read_regular
from kvtier_operator.cli.inputs.yaml_documents import read_documents
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, owner_policy


def policy_file(path: Path) -> OwnerPolicy:
    """What stands in it: the limits, or the chart's values with them at `operator.policy`.

    Raises:
        InvalidInputError: It is neither, or a limit is wrong.
    """
    source = str(path)
    documents = [*read_documents(read_regular(path, ""), source)] or [None]
    if len(documents) > 1:
        raise InvalidInputError(source, Problem("", f"{len(documents)} documents; keep one"))
    [document] = documents
    if not isinstance(document, Mapping) or "operator" not in document:
        return owner_policy(document, source)
    values = document["operator"]
    if not isinstance(values, Mapping) or "policy" not in values:
        message = "no policy in it; a file of limits has them at its root or at operator.policy"
        raise InvalidInputError(source, Problem("operator", message))
    return owner_policy(values["policy"], source, "operator.policy")
