"""vLLM's --kv-transfer-config: the one argument that loads a connector."""

import json
from collections.abc import Mapping
from typing import Any, Final

TRANSFER_ARGUMENT: Final = "--kv-transfer-config"


def transfer_args(config: Mapping[str, Any]) -> tuple[str, str]:
    """The argument and its JSON value, without spaces, keys in the order given.

    Source: vllm/config/kv_transfer.py, KVTransferConfig (0.32 and 0.33).
    """
    return TRANSFER_ARGUMENT, json.dumps(config, separators=(",", ":"))
