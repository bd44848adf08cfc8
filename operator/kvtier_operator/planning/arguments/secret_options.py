"""vLLM's options whose values are secrets, and where each is given without anybody reading it."""

from collections.abc import Mapping
from typing import Final

SECRETS: Final[Mapping[str, str]] = {
    "--api-key": "give spec.engine.env VLLM_API_KEY with valueFrom.secretKeyRef",
    "--hf-token": "name a Secret in spec.model.tokenSecretRef",
}
"""Options of vLLM 0.32 and 0.33, each with what to do in its place."""
