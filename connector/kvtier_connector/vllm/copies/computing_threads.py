"""Work on the threads with which a model computes on a CPU, while they have nothing else to do.

vLLM binds them to a core each, and they spin for some milliseconds after each part of a step: a thread of our
own would get half of a core at best, or share that of the thread that waits for it. PyTorch and vLLM start
them through OpenMP, and `GOMP_parallel` is what compilers make of `#pragma omp parallel`: GCC's library
(libgomp, parallel.c) has it, and so have LLVM's and Intel's, for what GCC has compiled.
"""

import ctypes
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, TypeVar

T = TypeVar("T")
_REGION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def on_computing_threads(do: Callable[[T], None], items: Iterable[T]) -> None:
    """Have all of the threads work items off, and return when all are done.

    Without OpenMP, the caller does them alone.

    Args:
        do: Called with each item, in any of the threads. Only what leaves the interpreter's lock goes on at
            the same time, and who waits for the lock is late: the longer and the fewer the calls, the better.
        items: What there is to do.

    Raises:
        Exception: What the first call that failed has raised; some items may not have been done then.
    """
    left, failed = deque(items), list[Exception]()

    def work(_: int | None) -> None:
        while not failed:
            try:
                item = left.popleft()
            except IndexError:
                return
            try:
                do(item)
            except Exception as error:  # noqa: BLE001 - ctypes would drop it; it is the caller's
                failed.append(error)

    parallel = _parallel()
    if parallel is None:
        work(None)
    else:
        parallel(_REGION(work), None, 0, 0)
    if failed:
        raise failed[0]


@cache
def _parallel(library: str | None = None) -> Callable[[object, None, int, int], None] | None:
    """Find the OpenMP that all of the process uses, which vLLM preloads for that; None without.

    It takes what each thread calls, what with, how many threads (0: as many as there are), and flags.

    Args:
        library: Where to look instead of everywhere in the process.
    """
    try:
        function = ctypes.CDLL(library).GOMP_parallel
    except AttributeError:
        return None
    function.restype, function.argtypes = None, (_REGION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    return function
