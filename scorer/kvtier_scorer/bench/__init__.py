"""What the picker is measured with."""
