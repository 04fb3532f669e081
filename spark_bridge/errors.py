"""Errors with words for the user of a query."""


class OptionsError(ValueError):
    """The options of a source or a sink cannot be used; the message has one sentence for each reason."""


class DataLossError(Exception):
    """Offsets that a query should read are gone, and failOnDataLoss is set."""


class SourceError(Exception):
    """The source cannot go on; the message says why."""


class FetchError(Exception):
    """Records of a range could not be read; the message says which and why."""
