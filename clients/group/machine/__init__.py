"""The member as a machine without socket, clock, thread or randomness: phases, state, functions over it."""
