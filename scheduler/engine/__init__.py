"""The steps of scheduling: sync, claim, finish, rescue, control. Each takes `now`; none has threads or waits."""
