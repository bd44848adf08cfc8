"""kvtier's version and where it is published, the one place for both: what is built takes them from here.

Read from the installed packages at run time the version would cost every command a search.
"""

from typing import Final

KVTIER_VERSION: Final = "0.1.0"
REPOSITORY_URL: Final = "https://git.invalid/kvtier"
PAGES_URL: Final = "https://pages.invalid/kvtier"
"""What `make docs` builds, as .github/workflows/docs.yml publishes it.

Both are addresses that cannot be (RFC 6761), for anybody could take the name of a project that is published
nowhere: whoever publishes kvtier writes its own here (docs/development/releases.md).
"""
