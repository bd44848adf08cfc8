"""What a cluster makes of a Plan: nodes that hold it, namespaces that limit it, what its owner allows."""
