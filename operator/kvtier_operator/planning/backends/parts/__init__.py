"""What several backends are made of: a disk's volumes, huge pages, what each rank has, and the argument."""
