"""Names in an engine's /metrics of what hints and tenants come to; as for `cpu_tier`.

Of tenants there are those that are listed in the settings, and OTHER for everybody else.
"""

from typing import Final

REFUSED: Final = "vllm:kvtier_hints_refused"  # by REASON: one of kvtier_common.hints.REASONS
NOT_GRANTED: Final = "vllm:kvtier_hints_not_granted_chunks"  # by TIER
RETAINED_BYTES: Final = "vllm:kvtier_retained_bytes"  # by TIER
TENANT_HELD_BYTES: Final = "vllm:kvtier_tenant_held_bytes"  # by TENANT and TIER
TENANT_STORED_BYTES: Final = "vllm:kvtier_tenant_stored_bytes"  # by TENANT
TENANT_ASKED_TOKENS: Final = "vllm:kvtier_tenant_asked_tokens"  # by TENANT
TENANT_HIT_TOKENS: Final = "vllm:kvtier_tenant_hit_tokens"  # by TENANT
TENANT_SAVED_SECONDS: Final = "vllm:kvtier_tenant_saved_seconds"  # by TENANT

REASON: Final = "reason"
TENANT: Final = "tenant"
TIER: Final = "tier"
OTHER: Final = "other"
