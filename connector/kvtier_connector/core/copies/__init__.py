"""Which bytes are copied where, and in which parts."""
