"""The changes that a group needs, and what they would have saved: findings over its history.

    advice = advise(Past.read(history, "orders", since_ms, until_ms))

Pure: the same history and thresholds give the same advice. Every figure of a saving comes from the recorded
history, played again by our own group machine and assignors (`replay`), first as it was, to see how near that
comes.
"""

from ringleader.insight.advice.advise import advise
from ringleader.insight.advice.findings import Advice, Change, Finding, Pattern, Saving, advice_json
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.thresholds import Thresholds

__all__ = ["Advice", "Change", "Finding", "Past", "Pattern", "Saving", "Thresholds", "advice_json", "advise"]
