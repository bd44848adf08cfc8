"""Memory that vLLM lends for a job, and wants back when the job is reported, whatever the disk does."""

import time
from typing import Final

_MOMENT_S: Final = 1e-4


class LentMemory:
    """vLLM's memory before the disk tier.

    Args:
        view: Shape (rows, bytes of a row).
    """

    def __init__(self, view: memoryview) -> None:
        self.rows = len(view)
        self.row_bytes = view.nbytes // self.rows
        self._memory = view.cast("B")  # a view with two dimensions has no view[row]
        self._lent = dict[int, memoryview]()

    def lend(self, row: int) -> tuple[memoryview, ...]:
        """Return a row's bytes, to be used until `take_back`."""
        start = row * self.row_bytes
        view = self._lent[row] = self._memory[start : start + self.row_bytes]
        return (view,)

    def take_back(self, row: int) -> None:
        """Have nobody touch a row any more: the memoryview that was lent is of no use from now on."""
        view = self._lent.pop(row, None)
        while view is not None:
            try:
                view.release()
            except BufferError:  # a copy or a checksum is under way, which waits for no disk
                time.sleep(_MOMENT_S)
            else:
                return

    def take_all_back(self) -> None:
        """Have nobody touch any row."""
        for row in list(self._lent):
            self.take_back(row)

    def close(self) -> None:
        """Let go of the memory itself."""
        self.take_all_back()
        self._memory.release()
