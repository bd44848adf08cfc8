"""`kvtier bench shared-prefix`: questions about shared system prompts, asked of a server."""
