"""A deterministic simulation: several engines, people and faults on one database and one clock, judged by a checker.

`world` holds what there is, `node` is one simulated process, `people` and `faults` are what happens to it, `episode`
draws a life from a seed, `watcher` looks at the database after every step, and `rules`, `slots` and `final` judge it.
"""
