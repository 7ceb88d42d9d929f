"""One address for many programs that share Chrome."""
