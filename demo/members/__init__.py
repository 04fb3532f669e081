"""The processes of the demo: a producer and members of two groups. Each writes its own ledger."""
