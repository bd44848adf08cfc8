"""vLLM's plug-in `kvtier`, of the group `vllm.general_plugins`."""

import logging
import os

from kvtier_connector.payload import ATTACH_VARIABLE


def register() -> None:
    """Give the tier to engines of this process; vLLM calls it in each process, and more than once in some.

    Without the variable it only keeps what engines accept as it is. It raises nothing: vLLM would end.
    """
    try:
        from kvtier_connector.embeddings import keep_embeddings_as_they_are  # noqa: PLC0415 - what fails is said

        keep_embeddings_as_they_are()
        text = os.environ.get(ATTACH_VARIABLE)
        if text is not None:
            from kvtier_connector.attach.begin import begin  # noqa: PLC0415 - only where it is asked for

            begin(text)
    except Exception:
        # vLLM configures handlers for its own name only
        logging.getLogger("vllm.kvtier").exception("kvtier: the plug-in failed, and attaches no engine")
