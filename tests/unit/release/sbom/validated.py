"""CycloneDX documents, held to their schema."""

import json
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def validated(text: str) -> dict[str, Any]:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document: dict[str, Any] = json.loads(text)
    return document
