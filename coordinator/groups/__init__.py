"""The heart: the group machine, sans-I/O: requests and time in; records, answers, journal entries out."""
