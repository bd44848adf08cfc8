"""What commands say of themselves and of a plan's checks."""
