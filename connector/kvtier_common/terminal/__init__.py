"""How commands speak: what others wrote commands no terminal and fills no screen."""
