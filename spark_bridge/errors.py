"""What goes wrong with words for the user of a query."""


class DataLossError(Exception):
    """Offsets that a query should read are gone, and failOnDataLoss is set."""


class SourceError(Exception):
    """The source cannot go on; the message says why."""


class FetchError(Exception):
    """Records of a range could not be read; the message says which and why."""


class SinkError(Exception):
    """Rows could not be written; the message says which and why."""
