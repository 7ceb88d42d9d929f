"""What the chat answers to the word `[markdown]`."""

from __future__ import annotations

MARKDOWN = """# Title

Some *words*, `code` and a [link](https://example.org/a).

- one
- two

1. first
2. second

```python
def f(x):
    return x < 1
```

| a | b |
| --- | --- |
| 1 | 2 |"""
