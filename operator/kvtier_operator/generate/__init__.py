"""Makes every generated file from its one source: CRD, references, chart, manifests."""
