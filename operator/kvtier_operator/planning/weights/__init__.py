"""Where an engine's weights come from, and what they take."""
