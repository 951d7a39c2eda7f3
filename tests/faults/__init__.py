"""Faults: real processes on real databases, killed, frozen and cut off; judged from outside by a journal."""
