"""What operator, connector and scorer share: a leaf that imports nothing of theirs, and nothing heavy."""
