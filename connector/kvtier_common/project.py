"""Where the project is published, the one place for it: alerts and the pages' site take it from here."""

from typing import Final

REPOSITORY_URL: Final = "https://github.com/kvtier/kvtier"
PAGES_URL: Final = "https://kvtier.github.io/kvtier"
"""What `make docs` builds, as .github/workflows/docs.yml publishes it."""
