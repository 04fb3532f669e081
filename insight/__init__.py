"""The history of every group of a cluster: what happened, why, what it cost, and what to change."""
