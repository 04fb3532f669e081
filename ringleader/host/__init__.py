"""The machine that a process runs on, for all rooms: files that one process holds, the HTTP server,
and settings that are lists."""
