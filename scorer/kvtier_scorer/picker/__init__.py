"""kvtier's own endpoint picker."""
