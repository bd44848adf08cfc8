"""From desired objects to writes: what differs, whose it is, and what is applied."""
