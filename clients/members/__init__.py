"""What a group member is made of: its machine's parts, its thread, its commits, its callbacks."""
