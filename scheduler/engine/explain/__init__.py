"""Explain: why a job ran, did not run, or will run at an instant: by its ledger, its state and its plan."""
