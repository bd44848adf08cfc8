"""Has a tier change nothing of what vLLM accepts of clients.

vLLM takes an engine whose connector loads for the decoding half of a pair: clients may then send a picture's
embeddings in its place (--enable-mm-embeds), and may leave even those out. Such input can end an engine, and
a tier has no need of it: what it loads was computed of pictures.

Source: vLLM, config/vllm.py, `VllmConfig._resolve_mm_embedding_inputs`. vLLM calls it before it
imports the connector, so the plug-in changes it, in engines that others own and in all other ones.
"""

from copy import copy
from functools import wraps
from typing import Final

from vllm.config import VllmConfig

from kvtier_connector.config import CONNECTOR_NAME

_MARK: Final = "__kvtier__"


def keep_embeddings_as_they_are() -> None:
    """Have vLLM decide of engines with our connector as of those with none; the first call counts."""
    original = VllmConfig._resolve_mm_embedding_inputs
    if hasattr(original, _MARK):
        return

    @wraps(original)
    def resolve(self: VllmConfig) -> None:
        transfer = self.kv_transfer_config
        if transfer is not None and transfer.kv_connector == CONNECTOR_NAME:
            self = copy(self)  # what vLLM changes is a part of both
            self.kv_transfer_config = None
        original(self)

    setattr(resolve, _MARK, True)
    VllmConfig._resolve_mm_embedding_inputs = resolve
