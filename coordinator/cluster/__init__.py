"""More than one node: who they are, who owns which partition of groups, and how that changes."""
