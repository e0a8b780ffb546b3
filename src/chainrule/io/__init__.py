"""Files that other tools write and read."""
