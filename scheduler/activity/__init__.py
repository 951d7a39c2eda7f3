"""Activity tasks: for each user one entry, which becomes one run some time after the user became active."""
