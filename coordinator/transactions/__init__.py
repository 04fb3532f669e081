"""Transactions across partitions and groups: the transaction coordinator (KIP-98)."""
