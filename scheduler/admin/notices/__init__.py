"""Notices in the admin: the channels and how they stand, and what people were told."""
