"""One pod's publisher: where it is, how its messages are read and numbered, and how much it may send."""
