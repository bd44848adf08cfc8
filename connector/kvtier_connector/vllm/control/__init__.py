"""What a running engine can be told over its control socket."""
