"""The connector's one place that knows numba: loops over flat arrays, compiled to machine code.

The scorer has its own, kvtier_scorer.index.compiled, with one call in common: its kernels are compiled at
their first call and come with its image, these at import on the engine's machine, and what both packages
share knows no numba.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba  # type: ignore[import-untyped, unused-ignore]

P = ParamSpec("P")
R = TypeVar("R")


def compiled(*examples: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function when its module is imported: an engine starts later for it, and no request waits.

    The code is kept in `NUMBA_CACHE_DIR`, beside the source or in the user's cache folder. Where none of
    these can be written to, or where it is full, each process compiles for itself, which takes seconds. numba
    sees a change of the function's own file only, so a compiled function calls no other from another file.

    It keeps the interpreter's lock, so that to other threads it happens at once. `examples` are a value of
    the type of each argument, with which it is called once; other types are refused with a TypeError. Without
    any it is part of other functions and compiled with them.
    """
    signature = tuple(map(numba.typeof, examples)) or None

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        try:
            made = numba.njit(signature, cache=True)(function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            made = numba.njit(signature)(function)
        except OSError:  # the folder is full, or is another user's in part
            made = numba.njit(signature)(function)
        if examples:
            made(*examples)  # a first call takes a tenth of a millisecond
        return cast("Callable[P, R]", made)

    return decorate
