"""The same world, led by hypothesis: it looks for the shortest sequence of steps that breaks a promise."""

import random
from contextlib import ExitStack

from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from scheduler.models import Status
from tests.simulation import episode, final
from tests.simulation.world import World

choices = st.integers(0, 2**16)
"""What is left to chance inside a step: which job, which run, which node."""

BOUNDS = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class Life(RuleBasedStateMachine):
    """Jobs, people, processes, faults and time."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.held, self.is_judged = World(0), ExitStack(), True
        self.held.enter_context(transaction.atomic())
        self.held.enter_context(self.world.at_work())

    @initialize(choice=choices)
    def begin(self, choice):
        self.take("add", choice)
        self.world.boot()

    @rule(choice=choices)
    def add(self, choice):
        self.take("add", choice)

    @rule(choice=choices, how=st.sampled_from(["edit", "edit_by_api", "edit_policy"]))
    def edit(self, choice, how):
        self.take(how, choice)

    @rule(choice=choices, what=st.sampled_from(["pause", "pause_group", "disable"]))
    def pause(self, choice, what):
        self.take(what, choice)

    @rule(choice=choices, what=st.sampled_from(["resume", "resume_group", "enable", "reset"]))
    def resume(self, choice, what):
        self.take(what, choice)

    @rule(choice=choices)
    def run_now(self, choice):
        self.take("run_by_hand", choice)

    @rule(choice=choices, what=st.sampled_from(["cancel", "fill_back", "prune"]))
    def tidy_up(self, choice, what):
        self.take(what, choice)

    @rule(choice=choices)
    def work(self, choice):
        for step in ("dispatch", "start"):
            self.take(step, choice)

    @precondition(lambda self: any(node.living for node in self.world.awake))
    @rule(status=st.sampled_from([Status.SUCCEEDED, Status.FAILED]), is_written=st.booleans())
    def finish(self, status, is_written):
        node = next(node for node in self.world.awake if node.living)
        node.end(next(iter(node.living)), status)
        if is_written:
            self.take("write", 0)

    @rule(choice=choices, what=st.sampled_from(["write", "write_in_doubt", "claim_in_doubt", "stale_claim"]))
    def race(self, choice, what):
        self.take(what, choice)

    @rule(choice=choices, what=st.sampled_from(["crash", "stop", "freeze", "thaw", "boot", "outage"]))
    def trouble(self, choice, what):
        self.take(what, choice)

    @rule(choice=choices)
    def pass_time(self, choice):
        self.take("pass_time", choice)

    @rule(choice=choices, what=st.sampled_from(["clock_forward", "clock_back"]))
    def step_clock(self, choice, what):
        self.take(what, choice)

    def take(self, name, choice):
        self.judged(lambda: episode.step(self.world, name), choice)

    def judged(self, act, choice=0):
        """Do something; once a promise is broken, nothing more is judged."""
        self.world.rng = random.Random(choice)
        self.is_judged = False
        act()
        self.is_judged = True

    def teardown(self):
        try:
            if self.is_judged:
                self.judged(lambda: episode.come_to_rest(self.world))
                final.judge(self.world)
        finally:
            transaction.set_rollback(True)
            self.held.close()


def test_no_sequence_of_steps_breaks_a_promise(db):
    run_state_machine_as_test(Life, settings=BOUNDS)
