"""Has the configuration that vLLM makes of an engine's arguments get the connector, if it can have it.

Neither the command nor its arguments are touched. An engine that would have started starts: what is not
understood, or fails, leaves it as its owner wrote it, with one line in its log and a metric.
"""

import logging
import multiprocessing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vllm import __version__
from vllm.platforms import current_platform

from kvtier_common.one_line import one_line
from kvtier_connector.attach import metric
from kvtier_connector.attach.claim import claim_tier
from kvtier_connector.attach.decisions import (
    LeftAloneError,
    Outcome,
    Reason,
    read_settings,
    require_first,
    require_fit,
    require_release,
    share_of,
)
from kvtier_connector.complete import missing_packages_text
from kvtier_connector.config import kv_transfer_config
from kvtier_connector.core.machine.memory import format_bytes

if TYPE_CHECKING:
    from kvtier_connector.vllm.upstream.engine_args import StartingEngine

_MOST_CHARACTERS: Final = 400  # of an error that others wrote
_log: Final = logging.getLogger("vllm.kvtier")  # vLLM configures handlers for its own name only


def begin(text: str) -> None:
    """Have each engine that this process configures attached as the variable says, or left alone."""
    try:
        _require_all()
    except LeftAloneError as why:
        # Workers come here, too; one line is enough.
        _tell(why.outcome, in_words=multiprocessing.parent_process() is None)
        return
    # refuses what has been looked for above, and ends the engine
    from kvtier_connector.vllm.upstream.engine_args import wrap_engine_config  # noqa: PLC0415

    wrap_engine_config(partial(_attach_or_leave, text))


def _require_all() -> None:
    """Leave the engine alone where the connector cannot be imported (LeftAloneError)."""
    require_release(__version__, is_known_device=current_platform.is_cuda() or current_platform.is_cpu())
    if line := missing_packages_text():
        raise LeftAloneError(Reason.PACKAGES_MISSING, line)


def _attach_or_leave(text: str, engine: "StartingEngine") -> Any | None:  # noqa: ANN401 - vLLM has no types
    """Return an engine's configuration with the tier; None to leave it alone."""
    try:
        outcome, config = _attach(text, engine)
    except LeftAloneError as why:
        outcome, config = why.outcome, None
    except Exception as error:  # noqa: BLE001 - a pod that would have started starts
        why_failed = one_line(f"{type(error).__name__}: {error}", _MOST_CHARACTERS)
        outcome, config = Outcome(Reason.FAILED, why_failed), None
    try:
        _tell(outcome, in_words=True)
    except Exception:  # noqa: BLE001 - as above
        _log.exception("kvtier: what became of this engine cannot be told")
    return config


def _attach(text: str, engine: "StartingEngine") -> tuple[Outcome, Any]:
    """Return what to say, and the configuration. Raises LeftAloneError, and whatever vLLM raises."""
    settings = read_settings(text)
    require_fit(engine.facts)
    configured = engine.configure(kv_transfer_config(settings))
    facts = configured.facts
    require_fit(facts)
    share = share_of(settings, facts.local_engines)
    require_first(is_first=claim_tier())
    configured.set_extra_config(kv_transfer_config(share)["kv_connector_extra_config"])
    disk = f" and {format_bytes(share.disk_capacity_bytes)} of disk" if share.disk_capacity_bytes else ""
    engines = "the engine" if facts.local_engines == 1 else f"each of {facts.local_engines} engines"
    why = f"{format_bytes(share.cpu_capacity_bytes)} of memory{disk} for {engines}"
    return Outcome(Reason.ATTACHED, why), configured.config


def _tell(outcome: Outcome, *, in_words: bool) -> None:
    """Say what became of the engine, in its log and in its metrics; once where it stays the same."""
    if metric.is_told(outcome.reason):
        return
    metric.tell(outcome.reason)
    if in_words:
        say = _log.info if outcome.reason is Reason.ATTACHED else _log.warning
        say("kvtier: %s", outcome)
