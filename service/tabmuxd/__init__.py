"""The tabmux server."""
