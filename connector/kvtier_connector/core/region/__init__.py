"""The tier's memory: pages, pins, and how it grows beside the engine."""
