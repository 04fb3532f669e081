"""What happened to the groups of a cluster, concluded from what can be read of it. Sans-I/O: facts in,
history out; no socket, no file, no clock.

`facts` is what it can be told, `engine.Inference` what concludes, `records` reads the bytes of
`__consumer_offsets`, `journal` those of Ringleader's `__ringleader_journal`.
"""
