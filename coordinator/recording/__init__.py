"""Recordings of the calls of a shard machine, in a file, and the same machine that plays them again."""
