"""Which pod gets a request: pods, scorers and index come together here. No I/O and no clock."""
