"""The way to the newest schema, one numbered file a step; a file that was released never changes."""
