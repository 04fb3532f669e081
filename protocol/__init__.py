"""Bytes to typed messages and back. No I/O, no clock; imports nothing else of ours."""
