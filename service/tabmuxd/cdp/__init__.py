"""DevTools: one hardened connection per browser, the targets it shows, and the browsers we launch."""
