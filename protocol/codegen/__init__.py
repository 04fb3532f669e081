"""Compiles a declaration to straight-line code, one version at a time, when that version is first used.

    python -m ringleader.protocol.codegen HeartbeatRequest     # prints what is compiled, for all versions
    python -m ringleader.protocol.codegen HeartbeatRequest 4

The code is fast because each run of fixed fields is one precompiled `Struct`, lengths of one byte are read
inline, values are slices, and the pieces of a body are joined once. It is safe because every length is
compared with the bytes left before it is used, and every count with the bytes left divided by the smallest
size of an element before a list is made.
"""
