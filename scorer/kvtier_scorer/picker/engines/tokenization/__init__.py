"""How a prompt's tokens are found, where estimating them is not enough."""
