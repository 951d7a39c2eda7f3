"""At work: what goes on just now, and what waits for it: group by group, and instance by instance."""
