"""What every tier behind memory has in common: orders, progress, and whether reading it pays."""
