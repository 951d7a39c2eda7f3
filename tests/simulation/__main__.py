"""Play many episodes by hand: `python -m tests.simulation --episodes 5000 --seed 1`."""

import argparse
import os
import sys
from collections import Counter

import django


def main() -> int:
    """Play the episodes of consecutive seeds; print every violation and what was seen. Exit code 1 if there was any."""
    options = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from django.test.utils import get_runner, setup_test_environment

    setup_test_environment(debug=False)
    get_runner(None, "django.test.runner.DiscoverRunner")(verbosity=0).setup_databases()
    return _play(range(options.seed, options.seed + options.episodes), options.steps)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--steps", type=int, default=80, help="steps of an episode before it comes to rest")
    return parser.parse_args()


def _play(seeds: range, steps: int) -> int:
    from tests.simulation.episode import play
    from tests.simulation.rows import Violation

    taken: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    violations = 0
    for seed in seeds:
        try:
            episode = play(seed, steps)
        except Violation as violation:
            violations += 1
            print(violation, end="\n\n", flush=True)
        else:
            taken += episode.steps
            rows += episode.rows
    print("steps:", ", ".join(f"{name} {count}" for name, count in taken.most_common()))
    print("rows:", ", ".join(f"{status} {count}" for status, count in rows.most_common()))
    print(f"{len(seeds)} episodes from seed {seeds.start}: {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
