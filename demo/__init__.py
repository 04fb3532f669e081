"""A consumer group on Ringleader, live: run by ``make demo``, never installed."""
