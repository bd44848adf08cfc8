"""kvtier's version, the one place for it: distribution, images, chart and manifests take it from here.

Read from the installed packages at run time it would cost every command a search.
"""

from typing import Final

KVTIER_VERSION: Final = "0.1.0"
