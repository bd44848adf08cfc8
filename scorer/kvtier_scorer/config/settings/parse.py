"""Reads the configuration of kvtier's own picker: what `flavors/builtin.py` renders, or what a person wrote.

Strict, as the other pickers are: an unknown field is refused rather than ignored, and each error is one line
that begins with the field's path.
"""

from kvtier_scorer.config.flavors.builtin import API_VERSION
from kvtier_scorer.config.flavors.document import KIND
from kvtier_scorer.config.settings.document import Document
from kvtier_scorer.config.settings.model import PickerSettings
from kvtier_scorer.config.settings.plugins import scorers_and_prefix
from kvtier_scorer.config.settings.sections import TokenizationMode
from kvtier_scorer.config.settings.strict_fields import convert, field_error
from kvtier_scorer.config.settings.strict_yaml import load_mapping


def parse_settings(text: str) -> PickerSettings:
    """The settings in an EndpointPickerConfig.

    Args:
        text: YAML.

    Raises:
        NoScorerError: No scorer has a weight.
        PickerConfigError: It is not such a document, or something in it is wrong.
    """
    raw = load_mapping(text)
    # told before the fields are: with another picker's document every one of them would be unknown
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if raw.get(name) != expected:
            raise field_error(name, f"must be {expected!r}, not {raw.get(name)!r}")
    document = convert(raw, Document)
    document.metrics.check("metrics")
    document.tokenization.check("tokenization")
    document.limits.check("limits")
    scorers, prefix = scorers_and_prefix(document)
    if document.events.enabled and document.tokenization.mode is TokenizationMode.ESTIMATE:
        # events name blocks by their tokens, which an estimate never meets
        raise field_error(
            "events.enabled", "needs tokenization.mode Tokenize or Tokenizer: KV events speak of true tokens"
        )
    return PickerSettings(
        scorers=scorers,
        prefix=prefix,
        affinity=document.affinity,
        shedding=document.shedding,
        metrics=document.metrics,
        events=document.events,
        tokenization=document.tokenization,
        limits=document.limits,
    )
