"""What the engine knows of a model that its file leaves out, as `make generate` wrote it down."""
