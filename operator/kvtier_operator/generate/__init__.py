"""Makes every generated file from its one source: CRD, references, chart, manifests."""

from kvtier_operator.generate.files import generated_files, out_of_date

__all__ = ["generated_files", "out_of_date"]
