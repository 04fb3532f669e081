"""The benchmarks of docs/performance.md: ``python -m bench`` (``make bench``)."""
