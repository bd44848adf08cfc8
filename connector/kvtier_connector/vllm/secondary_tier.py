"""What entries of vLLM's `secondary_tiers` name: `"module_path": "kvtier_connector.vllm.secondary_tier"`."""

from kvtier_connector.vllm.secondary.disk import KVTierDisk
from kvtier_connector.vllm.secondary.remote import KVTierRemote

__all__ = ["KVTierDisk", "KVTierRemote"]
