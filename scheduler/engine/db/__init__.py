"""Database: transactions and locks, statements in bulk, fast reads, and the clock that all instances share."""
