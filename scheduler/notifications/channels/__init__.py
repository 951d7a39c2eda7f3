"""Channels: where notices go. `base` is what each can do, `configured` makes them from SCHEDULER_NOTIFY."""
