"""Who may do what: the operator's rights with their reasons, and roles for people."""
