"""Why a picker cannot be configured as asked. Trying again does not help."""


class PickerConfigError(ValueError):
    """The picker cannot be configured as asked; the message says what to change."""


class UnsupportedVersionError(PickerConfigError):
    """No configuration is known to work with that version of the picker."""


class NoScorerError(PickerConfigError):
    """No scorer is left: every weight is 0 or belongs to a tier that does not exist."""
