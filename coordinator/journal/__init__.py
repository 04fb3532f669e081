"""The journal: why each group rebalanced, and what else an operator asks about; as values, as records, and
written."""
