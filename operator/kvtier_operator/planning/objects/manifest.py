"""Objects as YAML that every reader takes for the same."""

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

_READ_AS_ANOTHER_TYPE: Final = re.compile(
    r"[yYnN]|_*[-+]?[_.]*[0-9][0-9_.xXoObBA-Fa-f]*([eE]_*[-+]?[0-9_]+)?"
)
"""Strings that PyYAML writes plain and kubectl's YAML reader (sigs.k8s.io/yaml: YAML 1.1 with parts of 1.2)
takes for a number or a boolean, such as 1e3, 0O17, +.3, +_174 or y."""


class _Dumper(yaml.SafeDumper):
    """No anchors, text of several lines as a block, quotes where a reader could err."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - the base class's signature
        del data
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif _READ_AS_ANOTHER_TYPE.fullmatch(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def to_yaml(objects: Iterable[Mapping[str, Any]], *, sort_keys: bool = True) -> str:
    """The objects as one stream, each after a `---`: the same bytes for the same objects.

    Args:
        objects: As in JSON.
        sort_keys: Whether keys are sorted; as they are in the objects otherwise.
    """
    documents = (
        "---\n" + yaml.dump(dict(content), Dumper=_Dumper, sort_keys=sort_keys, width=sys.maxsize)
        for content in objects
    )
    return "".join(documents)
