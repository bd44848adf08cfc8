"""How a model's published files are read, as the engine reads them."""
