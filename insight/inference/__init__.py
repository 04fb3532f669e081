"""The history of the groups of a cluster, concluded from its records and from polls. Sans-I/O: facts in,
history out; no socket, no file, no clock.

`facts` has its inputs, `engine.Inference` concludes, `records` reads the bytes of
`__consumer_offsets`, `journal` those of Ringleader's `__ringleader_journal`.
"""
