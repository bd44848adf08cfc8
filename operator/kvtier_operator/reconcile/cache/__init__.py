"""What the watches show, kept in as few bytes as possible."""
