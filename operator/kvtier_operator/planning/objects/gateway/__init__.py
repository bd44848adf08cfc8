"""Objects that lead from a gateway to the engines: pool, route, and what each provider needs."""
