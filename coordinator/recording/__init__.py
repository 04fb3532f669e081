"""What a shard machine was asked, in a file, and the same machine at work on it again."""
