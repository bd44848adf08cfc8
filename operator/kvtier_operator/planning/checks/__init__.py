"""Every check of a plan, one a file: a pure function from the plan's parts to Pass, Warn or Reject.

A new check is one file and one line in `CHECKS`. Each has a test that sees it pass, warn and reject.
"""

from typing import Final

from kvtier_operator.planning.checks.arguments.engine_tls import engine_tls
from kvtier_operator.planning.checks.arguments.expandable_segments import expandable_segments
from kvtier_operator.planning.checks.arguments.known_arguments import known_arguments
from kvtier_operator.planning.checks.arguments.reserved_arguments import reserved_arguments
from kvtier_operator.planning.checks.arguments.reserved_environment import reserved_environment
from kvtier_operator.planning.checks.arguments.unplanned_arguments import unplanned_arguments
from kvtier_operator.planning.checks.arguments.unplanned_environment import unplanned_environment
from kvtier_operator.planning.checks.cache.attention_backend import attention_backend
from kvtier_operator.planning.checks.cache.block_hash import block_hash
from kvtier_operator.planning.checks.cache.block_size import block_size
from kvtier_operator.planning.checks.cache.cache_dtype import cache_dtype
from kvtier_operator.planning.checks.cache.cache_layout import cache_layout
from kvtier_operator.planning.checks.cache.device_cache import device_cache
from kvtier_operator.planning.checks.cache.hybrid_manager import hybrid_manager
from kvtier_operator.planning.checks.cache.prefix_fills_block import prefix_fills_block
from kvtier_operator.planning.checks.cache.retention_interval import retention_interval
from kvtier_operator.planning.checks.cache.state_dtype import state_dtype
from kvtier_operator.planning.checks.cache.whole_chunks import whole_chunks
from kvtier_operator.planning.checks.check import Check, CheckInput
from kvtier_operator.planning.checks.device.backend_device import backend_device
from kvtier_operator.planning.checks.device.cpu_request import cpu_request
from kvtier_operator.planning.checks.device.deprecated_backend import deprecated_backend
from kvtier_operator.planning.checks.device.device_image import device_image
from kvtier_operator.planning.checks.device.devices import devices
from kvtier_operator.planning.checks.device.engine_image import engine_image
from kvtier_operator.planning.checks.device.shared_claim import shared_claim
from kvtier_operator.planning.checks.disk.disk_behind_memory import disk_behind_memory
from kvtier_operator.planning.checks.disk.disk_folder import disk_folder
from kvtier_operator.planning.checks.disk.disk_restart import disk_restart
from kvtier_operator.planning.checks.disk.host_path import host_path
from kvtier_operator.planning.checks.disk.machine_disk import machine_disk
from kvtier_operator.planning.checks.memory.hugepages_backend import hugepages_backend
from kvtier_operator.planning.checks.memory.hugepages_pool import hugepages_pool
from kvtier_operator.planning.checks.memory.machine_memory import machine_memory
from kvtier_operator.planning.checks.memory.memlock import memlock
from kvtier_operator.planning.checks.memory.pinned_allocation import pinned_allocation
from kvtier_operator.planning.checks.memory.shared_memory import shared_memory
from kvtier_operator.planning.checks.memory.tier_holds_sequence import tier_holds_sequence
from kvtier_operator.planning.checks.memory.tier_larger_than_device import tier_larger_than_device
from kvtier_operator.planning.checks.memory.tier_pays import tier_pays
from kvtier_operator.planning.checks.model.adapter_keys import adapter_keys
from kvtier_operator.planning.checks.model.adapters import adapters
from kvtier_operator.planning.checks.model.architecture_known import architecture_known
from kvtier_operator.planning.checks.model.attention_heads import attention_heads
from kvtier_operator.planning.checks.model.draft_known import draft_known
from kvtier_operator.planning.checks.model.hybrid_models import hybrid_models
from kvtier_operator.planning.checks.model.model_length import model_length
from kvtier_operator.planning.checks.model.model_source import model_source
from kvtier_operator.planning.checks.model.model_volume import model_volume
from kvtier_operator.planning.checks.model.overridden_length import overridden_length
from kvtier_operator.planning.checks.model.served_names import served_names
from kvtier_operator.planning.checks.model.speculation_supported import speculation_supported
from kvtier_operator.planning.checks.model.weights_known import weights_known
from kvtier_operator.planning.checks.policy.allowed_gateways import allowed_gateways
from kvtier_operator.planning.checks.policy.allowed_host_names import allowed_host_names
from kvtier_operator.planning.checks.policy.allowed_host_path import allowed_host_path
from kvtier_operator.planning.checks.policy.allowed_images import allowed_images
from kvtier_operator.planning.checks.policy.allowed_ipc_lock import allowed_ipc_lock
from kvtier_operator.planning.checks.policy.allowed_root import allowed_root
from kvtier_operator.planning.checks.policy.allowed_templates import allowed_templates
from kvtier_operator.planning.checks.router.data_parallel import data_parallel
from kvtier_operator.planning.checks.router.gateway_memory import gateway_memory
from kvtier_operator.planning.checks.router.gateway_provider import gateway_provider
from kvtier_operator.planning.checks.router.other_models import other_models
from kvtier_operator.planning.checks.router.picker_callers import picker_callers
from kvtier_operator.planning.checks.router.picker_entries import picker_entries
from kvtier_operator.planning.checks.router.picker_gpu_entries import picker_gpu_entries
from kvtier_operator.planning.checks.router.picker_memory import picker_memory
from kvtier_operator.planning.checks.router.picker_replicas import picker_replicas
from kvtier_operator.planning.checks.scaling.scaling_metrics import scaling_metrics
from kvtier_operator.planning.verdict import CheckResult

CHECKS: Final[tuple[Check, ...]] = (
    architecture_known,
    attention_heads,
    speculation_supported,
    draft_known,
    hybrid_models,
    whole_chunks,
    adapter_keys,
    adapters,
    served_names,
    hybrid_manager,
    retention_interval,
    overridden_length,
    model_length,
    backend_device,
    deprecated_backend,
    known_arguments,
    reserved_arguments,
    unplanned_arguments,
    reserved_environment,
    unplanned_environment,
    expandable_segments,
    engine_tls,
    block_hash,
    attention_backend,
    block_size,
    prefix_fills_block,
    cache_dtype,
    state_dtype,
    cache_layout,
    device_cache,
    weights_known,
    model_source,
    model_volume,
    devices,
    device_image,
    engine_image,
    shared_claim,
    cpu_request,
    machine_memory,
    shared_memory,
    hugepages_backend,
    hugepages_pool,
    memlock,
    pinned_allocation,
    tier_holds_sequence,
    tier_larger_than_device,
    tier_pays,
    disk_restart,
    disk_behind_memory,
    disk_folder,
    machine_disk,
    host_path,
    picker_entries,
    picker_gpu_entries,
    picker_memory,
    data_parallel,
    picker_replicas,
    gateway_provider,
    gateway_memory,
    other_models,
    picker_callers,
    scaling_metrics,
    allowed_host_path,
    allowed_root,
    allowed_ipc_lock,
    allowed_images,
    allowed_templates,
    allowed_host_names,
    allowed_gateways,
)
"""In the order of the report: the model, the engine, memory, the tiers, the picker, the gateway, the
autoscaler, what the cluster's owner lets resources ask for."""


def run_checks(given: CheckInput) -> tuple[CheckResult, ...]:
    """The verdict of every check, in order; all of them run whatever the others say."""
    return tuple(check(given) for check in CHECKS)
