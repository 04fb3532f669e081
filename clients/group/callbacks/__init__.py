"""The callbacks of the application: where they run, and the work that a revocation waits for."""
