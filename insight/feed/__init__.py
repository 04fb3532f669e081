"""Reads what a cluster says of its groups, asks for what it does not say, and writes the history.

`tail` reads topics, `transactions` keeps what is not committed yet, `polls` asks, `watcher.Watcher` puts them
together; `catch_up.history_of` brings a history up to date for commands that only ask.
"""
