"""Foreign: schedules of other schedulers, one file each. None of them needs the other package to be installed."""
