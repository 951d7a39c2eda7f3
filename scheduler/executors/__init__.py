"""What runs the call of a task: one file for each way."""
