"""What lies in a namespace's folder: by these names a tier knows its own."""

import re
import stat
from typing import Final

from kvtier_connector.core.disk.files import journal
from kvtier_connector.core.disk.files.directory import Directory
from kvtier_connector.core.disk.worth.rates import Rates
from kvtier_connector.errors import UnsafeFolderError

FACTS: Final = "fingerprint"
RATES: Final = "rates"
_NAMESPACE: Final = re.compile(r"[0-9a-f]{16}")
_FILE: Final = re.compile(rf"({journal.NAME}|{RATES})(\.new)?|{FACTS}|blocks-\d{{6,}}")
_MOST_RATES_BYTES: Final = 4096


def names_a_namespace(name: str) -> bool:
    """Tell whether a folder could be one; others give such names, too."""
    return _NAMESPACE.fullmatch(name) is not None


def is_namespace(folder: Directory) -> bool:
    """Tell whether a folder holds what a namespace does and nothing else.

    Raises:
        OSError: it cannot be read.
    """
    return all(_FILE.fullmatch(each) and stat.S_ISREG(folder.look(each).st_mode) for each in folder.names())


def rates_in(folder: Directory) -> Rates:
    """Return what an engine has kept there; of what cannot be read, nothing is known."""
    try:
        return Rates.parse(folder.read(RATES, _MOST_RATES_BYTES).decode())
    except (OSError, ValueError, UnsafeFolderError):
        return Rates()
