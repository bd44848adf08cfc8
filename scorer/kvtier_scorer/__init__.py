"""The endpoint picker side of kvtier: prefix scorers and their configuration."""
