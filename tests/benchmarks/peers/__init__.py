"""Other schedulers under the same load as ours, each set up as its documentation says, on SQLite with four workers."""
