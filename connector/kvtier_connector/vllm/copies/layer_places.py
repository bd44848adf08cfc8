"""Where each layer's page lies in a block, for engines whose blocks have the pages of all layers together."""

from collections.abc import Mapping

import torch
from vllm.v1.kv_cache_interface import KVCacheConfig

from kvtier_connector.core.copies.copy_parts import LayerPlace


def layer_places(
    kv_caches: Mapping[str, torch.Tensor], kv_cache_config: KVCacheConfig
) -> tuple[LayerPlace, ...]:
    """Return the layers of an engine's only KV cache group, in order; none where it has several.

    Args:
        kv_caches: For each layer, its pages of all blocks.
        kv_cache_config: vLLM's.
    """
    if len(kv_cache_config.kv_cache_groups) != 1:
        return ()
    (group,) = kv_cache_config.kv_cache_groups
    page_bytes: int = group.kv_cache_spec.page_size_bytes
    caches = [kv_caches[name] for name in group.layer_names]
    return tuple(LayerPlace(each.storage_offset() * each.element_size(), page_bytes) for each in caches)
