"""Waiting for what must happen: never for a time, and who gives up says what was seen last."""

import time

PATIENCE_S = 900  # it ends a test that hangs, and says nothing of how quick a machine is
LOOK_S = 0.02  # between two looks that cost little
SHOWN = 3000  # characters of what was seen


def wait_until(look, what, timeout_s=PATIENCE_S, is_met=bool, step_s=LOOK_S):
    """Looks until `is_met` of what it sees, and returns that. `what`: how the condition is called when it is not met in
    time."""
    deadline = time.monotonic() + timeout_s
    while not is_met(seen := look()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {timeout_s} s; seen last: {show(seen)}")
        time.sleep(step_s)
    return seen


def show(seen):
    """The end of a text, if that is long: that of a log or a page says most."""
    text = seen if isinstance(seen, str) else repr(seen)
    return text if len(text) <= SHOWN else f"... {text[-SHOWN:]}"
