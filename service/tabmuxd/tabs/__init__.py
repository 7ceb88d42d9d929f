"""Who holds a tab, when it may be closed, how it comes back; navigation and dialogs."""
