"""Whether the backend tells adapters of one model apart."""

from typing import Final

from kvtier_operator.api.backend import Backend
from kvtier_operator.planning.arguments.extra_args import is_on
from kvtier_operator.planning.checks.check import CheckInput, Verdicts
from kvtier_operator.planning.verdict import CheckResult

_VERDICTS: Final = Verdicts("adapter-keys", "spec.backend")
_LORA: Final = "--enable-lora"
_OTHERWISE: Final = {
    Backend.LMCACHE: "",
    Backend.LMCACHE_MP: ", or give the requests of each adapter a cache_salt of their own",
}


def adapter_keys(given: CheckInput) -> CheckResult:
    """LMCache names chunks by their tokens and the model, and leaves the adapter out.

    lmcache 0.5.6: integration/vllm/vllm_multi_process_adapter.py (_create_key), v1/token_database.py; vLLM
    #44250, LMCache #2961. vLLM's hashes, which KVTier and Native take, hold it (v1/core/kv_cache_utils.py).
    """
    backend = given.spec.backend
    if not is_on(given.spec.engine.extra_args, _LORA):
        return _VERDICTS.passed("no adapters")
    if backend in _OTHERWISE:
        return _VERDICTS.warn(
            "AdaptersShareKeys",
            f"{_LORA}: the keys of backend {backend} leave the adapter out, so a prompt to one adapter is "
            "answered from what another has computed of the same tokens, and wrongly; set spec.backend to "
            f"KVTier or Native{_OTHERWISE[backend]}",
        )
    return _VERDICTS.passed(f"backend {backend} keeps apart what adapters compute")
