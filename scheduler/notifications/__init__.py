"""Notifications: people are told what goes wrong, once, in order, and never at the cost of a run.

Rows decide: what is told is a `Notice`, where it goes a `NoticeDelivery`. A look writes them, a channel sends them.
"""
