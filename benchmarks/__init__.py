"""What the server costs, each against the least that could do the same. Run one as `python -m benchmarks.NAME`."""
