"""Commands that look one thing up: a resource's images, its engine's command line, what a field means."""
