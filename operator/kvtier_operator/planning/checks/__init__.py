"""Every check of a plan, a subject a file: pure functions from the plan's parts to Pass, Warn or Reject.

A new check is one file, or a function in one, and one line in `CHECKS`. Each has a test that sees it pass,
warn and reject.
"""

from typing import Final

from kvtier_operator.planning.checks import (
    arguments,
    cache_blocks,
    cache_format,
    capacity,
    device,
    disk,
    environment,
    gateway,
    memory,
    model,
    picker,
    policy,
    scaling,
    speculation,
    weights,
)
from kvtier_operator.planning.checks.check import Check, CheckInput
from kvtier_operator.planning.verdict import CheckResult

CHECKS: Final[tuple[Check, ...]] = (
    model.architecture_known,
    model.attention_heads,
    speculation.speculation_supported,
    speculation.draft_known,
    model.hybrid_models,
    cache_blocks.whole_chunks,
    weights.adapter_keys,
    weights.adapters,
    model.served_names,
    cache_blocks.hybrid_manager,
    cache_blocks.retention_interval,
    model.overridden_length,
    model.model_length,
    device.backend_device,
    device.deprecated_backend,
    arguments.known_arguments,
    arguments.reserved_arguments,
    arguments.unplanned_arguments,
    environment.reserved_environment,
    environment.known_environment,
    environment.unplanned_environment,
    environment.expandable_segments,
    arguments.engine_tls,
    cache_blocks.block_hash,
    cache_format.attention_backend,
    cache_blocks.block_size,
    cache_blocks.prefix_fills_block,
    cache_format.cache_dtype,
    cache_format.state_dtype,
    cache_format.cache_layout,
    capacity.device_cache,
    weights.weights_known,
    weights.model_source,
    weights.model_volume,
    device.devices,
    device.device_image,
    device.engine_image,
    device.shared_claim,
    device.cpu_request,
    memory.machine_memory,
    memory.shared_memory,
    memory.hugepages_backend,
    memory.hugepages_pool,
    memory.memlock,
    memory.pinned_allocation,
    capacity.tier_holds_sequence,
    capacity.tier_larger_than_device,
    capacity.tier_pays,
    disk.disk_restart,
    disk.disk_behind_memory,
    disk.disk_folder,
    disk.machine_disk,
    disk.host_path,
    picker.picker_entries,
    picker.picker_gpu_entries,
    picker.picker_memory,
    picker.data_parallel,
    picker.picker_replicas,
    gateway.gateway_provider,
    gateway.gateway_memory,
    gateway.other_models,
    gateway.picker_callers,
    scaling.scaling_metrics,
    policy.allowed_host_path,
    policy.allowed_root,
    policy.allowed_ipc_lock,
    policy.allowed_images,
    policy.allowed_templates,
    policy.allowed_host_names,
    policy.allowed_gateways,
)
"""In the order of the report: the model, the engine, memory, the tiers, the picker, the gateway, the
autoscaler, what the cluster's owner lets resources ask for."""


def run_checks(parts: CheckInput) -> tuple[CheckResult, ...]:
    """The verdict of every check, in order; all of them run whatever the others say."""
    return tuple(check(parts) for check in CHECKS)
