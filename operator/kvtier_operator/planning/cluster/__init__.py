"""What a cluster makes of a Plan: nodes that hold it, storage that its volumes name."""
