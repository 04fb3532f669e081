"""The machine that a process runs on, for all rooms: files that one process holds, and the HTTP server."""
