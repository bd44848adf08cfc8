"""Binds the core to vLLM. Importing it refuses a vLLM that it does not know."""

from kvtier_connector.vllm.compat import require_supported_vllm

require_supported_vllm()
