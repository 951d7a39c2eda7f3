"""Runs for users: for each user one entry, which becomes one run some time after the user became active.

The engine knows nothing of this package: it promises attempts, which the claim starts as all others.
"""
