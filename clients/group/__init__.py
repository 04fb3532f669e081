"""Membership of a group: the member's machine, its thread, its callbacks, and what it does while it leads."""
