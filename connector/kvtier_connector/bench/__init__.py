"""``kvtier bench connector``: the connector's figures, measured beside what they are compared with."""
