"""The contract as Python messages, stubs and servicers; written by scripts/generate from proto/tabmux/v1."""
