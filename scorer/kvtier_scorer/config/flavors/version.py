"""Versions of pickers, as far as their configuration depends on them."""

from kvtier_scorer.config.errors import UnsupportedVersionError


def minor_version(version: str) -> tuple[int, int]:
    """Major and minor of `1.4`, `v1.4` or `v1.4.2`.

    Raises:
        UnsupportedVersionError: It is not a version.
    """
    parts = version.removeprefix("v").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        raise UnsupportedVersionError(f"{version!r} is not a version; write major.minor, as in 1.4") from None
