"""Configurations made of transformers' and vLLM's classes."""

import logging
from typing import Any


def config_of(cls: Any, **values: object) -> Any:  # noqa: ANN401 - of a package without types
    """A configuration of this class; None for one that needs more than that to be made."""
    logging.disable(logging.ERROR)
    try:
        return cls(**values)
    except Exception:  # noqa: BLE001 - whatever the hundreds of classes raise
        return None
    finally:
        logging.disable(logging.NOTSET)
