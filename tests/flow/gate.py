"""Jobs of which a test says how long they run: until there is a file, its gate, they wait or are slow."""

import struct

from worker_flow import BUILD

import gpu_worker as gw
import numpy

# Of workers that run such jobs: no test waits for longer than these may.
SETTINGS = {"programs": {"dir": str(BUILD / "tests/flow")}, "limits": {"timeout_ms": "1h", "timeout_max_ms": "1h"}}


class Gate:
    """A gate is closed at first."""

    def __init__(self, test):
        self._path = test.folder / "gate"
        test.use_environment({"GPU_WORKER_TEST_GATE": str(self._path)})

    def open(self):
        self._path.touch()

    def close(self):
        self._path.unlink()


def _job(number, entry):
    return gw.job(
        f"job-{number}", outputs=["y"],
        buffers={"x": gw.upload(numpy.array([number], "<u4")), "y": gw.zeros([1], "<u4")},
        steps=[gw.step("ledger", ["x", "y"], entry=entry, elements=1)])


def held(number):
    """Runs until the gate is open."""
    return _job(number, "held")


def paced(number):
    """Takes 50 ms while the gate is closed."""
    return _job(number, "paced")


def is_right(result, number):
    return result["status"] == "ok" and result["outputs"][0]["data"] == struct.pack("<I", 3 * number + 1)
