"""The overview in the admin: a day in lanes, the week to come, and the stop of everything."""
