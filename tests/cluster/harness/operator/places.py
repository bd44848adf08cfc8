"""Where the chart and the manifests are, and what they are called when installed."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
CHART: Final = ROOT / "charts" / "tiered-prefix-cache"
MANIFESTS: Final = ROOT / "manifests"
CI_VALUES: Final = sorted((CHART / "ci").glob("*-values.yaml"))
SYSTEM: Final = "kvtier-system"
OPERATOR: Final = "kvtier-operator"
CRD: Final = "crd/kvcachetiers.kvtier.dev"
