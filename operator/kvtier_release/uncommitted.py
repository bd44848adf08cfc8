"""What a release takes of a checkout that its last commit has not."""

from pathlib import Path
from typing import Final

from kvtier_release.commands import run
from kvtier_release.errors import ReleaseError

_TAKEN: Final = (
    *("operator", "connector", "scorer", "charts", "docs/user-guide/examples"),
    *("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "requirements.lock"),
)


def uncommitted(root: Path) -> list[str]:
    """Paths of files that were changed or are new; none where there is no git to ask, or no clone."""
    try:
        found = run("git", "status", "--porcelain", "-z", "--untracked-files=all", "--", *_TAKEN, cwd=root)
    except ReleaseError:
        return []
    return [each[3:] for each in found.split("\0") if each[2:3] == " "]
