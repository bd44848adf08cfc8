"""When the disk tier gives up on its disk."""

import errno
from dataclasses import dataclass, replace
from typing import Final, Self

_HOPELESS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EBADF}
)
"""Full, read-only or gone: the next block would meet the same."""
_IN_A_ROW: Final = 3
"""Failed blocks after which a disk is not trusted. A bad sector is one; what fails three times, fails."""


@dataclass(frozen=True, slots=True)
class Health:
    """What the last transfers have shown.

    Attributes:
        failures: failed blocks in a row.
        attempts: how often the disk was tried again since a block has last shown that it works.
    """

    failures: int = 0
    attempts: int = 0

    def after(self, error: OSError | None) -> Self:
        """Return the health after a transfer that ended so."""
        if error is None:
            return type(self)()
        hopeless = error.errno in _HOPELESS
        return replace(self, failures=_IN_A_ROW if hopeless else self.failures + 1)

    @property
    def is_down(self) -> bool:
        """Whether nothing should be asked of the disk."""
        return self.failures >= _IN_A_ROW

    def tried_again(self) -> Self:
        """Return the health after another attempt."""
        return replace(self, attempts=self.attempts + 1)

    def reopened(self) -> Self:
        """Return the health once the disk can be opened again; no block has shown yet that it works."""
        return replace(self, failures=0)
