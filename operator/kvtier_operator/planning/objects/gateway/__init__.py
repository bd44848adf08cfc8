"""Objects between clients and engines: pool and route, what each provider needs, kvtier's own gateway."""
