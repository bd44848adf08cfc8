"""Binds the core to vLLM. Importing it refuses a vLLM that it does not know or that lacks what it needs."""

from kvtier_connector.complete import require_all

require_all()

from kvtier_connector.vllm.upstream.compat import require_supported_vllm  # noqa: E402 - what is missing is said first

require_supported_vllm()
