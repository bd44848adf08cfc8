"""When the disk tier gives up on its disk, and when it tries again."""

import errno
from dataclasses import dataclass, replace
from typing import Final, Self

_HOPELESS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EBADF}
)
"""Full, read-only or gone: the next block would meet the same."""
_IN_A_ROW: Final = 3
"""Failed blocks after which a disk is not trusted. A bad sector is one; what fails three times, fails."""
_FIRST_RETRY_S: Final = 1.0
_LAST_RETRY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Health:
    """What the last transfers have shown.

    Args:
        failures: failed blocks in a row.
        retry_s: how long to wait before the disk is tried again.
    """

    failures: int = 0
    retry_s: float = _FIRST_RETRY_S

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
        """Return the health after the disk was tried and did not work: the next wait is twice as long."""
        return replace(self, retry_s=min(2 * self.retry_s, _LAST_RETRY_S))
