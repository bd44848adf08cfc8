"""What stands in the list of an owner's limit: one pattern for the chart's schema and for the operator."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.formats import LABEL, SUBDOMAIN
from kvtier_operator.api.spec.router import HOST_PATTERN

_FOLDER: Final = r"([^./][^/]*|\.[^./][^/]*|\.\.[^/]+)"
"""A name that is neither `.` nor `..`, by which a path could mean another."""
_HOST: Final = "[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]+)?"
_PART: Final = "[a-z0-9][a-z0-9._-]*"
_REPOSITORY: Final = f"([a-z0-9][a-z0-9_-]*|{_HOST}(/{_PART})+)"
"""One part alone has no dot: that would be a host, which allows nothing without the `/` at its end."""
_TAG: Final = "(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries that one limit's list may have.

    Attributes:
        pattern: Regular expression of a whole one, as Python and Go's RE2 have it.
        form: What it is and an example, for the error.
    """

    pattern: str
    form: str

    def fits(self, given: object) -> bool:
        """Whether it is one."""
        return isinstance(given, str) and re.fullmatch(self.pattern, given) is not None


ENTRIES: Final[Mapping[str, Entries]] = {
    "host_path": Entries(f"^/({_FOLDER}(/{_FOLDER})*/?)?$", "a folder's whole path such as /mnt/nvme0"),
    "images": Entries(
        f"^({_REPOSITORY}{_TAG}|{_HOST}/({_PART}/)*)$",
        "a repository such as registry.example/team/engine, or the start of one that ends in /",
    ),
    "host_names": Entries(HOST_PATTERN, "a host name such as llm.example.com or *.team.example.com"),
    "foreign_gateways": Entries(f"^{LABEL}(/{SUBDOMAIN})?$", "NAMESPACE or NAMESPACE/NAME"),
}
"""By limit; the others are no lists."""
