"""A Mooncake store, through Mooncake's own client, which runs in processes of its own."""
