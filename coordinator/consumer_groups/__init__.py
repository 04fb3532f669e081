"""Groups of the consumer protocol (KIP-848): their state, its records, and the algorithms on it.

Everything here is a value or a function over values: no clock, no randomness, no socket, no file. The room
`coordinator.groups` holds the groups of a shard and answers requests; it asks this room what a member gets.
"""
