"""What knows no engine: the memory region, its pages, and the index of what is cached in it."""
