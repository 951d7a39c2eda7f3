"""The adapters of scheduler/contrib, against the packages themselves."""
