"""The connector's error hierarchy."""


class ConnectorError(Exception):
    """Base of every error that the connector raises on purpose: one clear line, no traceback needed."""


class SettingError(ConnectorError):
    """A setting of kv_connector_extra_config is unknown, missing or has a bad value."""


class UnsupportedEngineError(ConnectorError):
    """The installed vLLM, or how it is configured, is not one that this connector can serve."""


class RegionError(ConnectorError):
    """The memory region cannot be made as asked (pool, limit or space exhausted)."""


class PinError(ConnectorError):
    """The region cannot be locked into memory and the policy requires it."""


class DeviceError(ConnectorError):
    """The device does not copy, or has computed without what it should have: the engine has to end."""


class DiskError(ConnectorError):
    """A file of the disk tier cannot be read or written now (full, read-only, failing, gone)."""


class UnsafeFolderError(DiskError):
    """The disk tier's folder, or something in it, may be another user's; a person has to look."""


class CorruptBlockError(ConnectorError):
    """A block on disk is not as it was written; it is a miss."""


class FolderInUseError(DiskError):
    """Another engine has the disk tier's folder; it may end soon."""


class RemoteError(ConnectorError):
    """The remote tier's store cannot be used now: it is gone, refuses, or does not speak its protocol."""


class RemoteFullError(RemoteError):
    """The store has no room and evicts nothing for it."""


class RemoteMovedError(RemoteError):
    """A key is another server's of the cluster now; connect again."""


class RemoteDeniedError(RemoteError):
    """The store does not let these credentials do that; a person has to look."""


class RemoteTlsError(RemoteError):
    """The store's certificate is not believed, or TLS is not spoken; a person has to look."""


class RemoteTimeoutError(RemoteError):
    """The store did not answer within its time."""


class VanishedBlockError(ConnectorError):
    """A block was in the remote tier when it was asked for, and has gone since; it is a miss."""
