"""From desired objects to writes: what is out of sync, who owns a name, and what is applied."""
