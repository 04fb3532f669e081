"""Storage of committed offsets and group metadata: append, replay."""
