"""Why a simulation cannot be run as asked; each message is one line for the person who asked."""


class SimulationError(ValueError):
    """What was asked cannot be simulated; the message says where and what to change."""


class TraceError(SimulationError):
    """A trace cannot be read; the message names file, line and field."""


class PoolError(SimulationError):
    """Pods of these sizes cannot serve this trace."""
