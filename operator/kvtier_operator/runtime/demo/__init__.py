"""The main job on one machine: a model made on the spot, a long text, and what the CPU tier saves."""
