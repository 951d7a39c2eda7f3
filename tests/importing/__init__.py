"""Databases made by the real packages, and what these would run: makers, each run where its package is installed."""
