"""Files generated from the engine's own packages: `python -m kvtier_operator.generate.engine_data`."""
