"""How long one job takes on an idle worker, one after the other: through a pipe from the message to its result, beside the same message
through `cat`, in turns; through a broker from the call of the Python client to its answer.
usage: client_latency.py BINARY pipe|embedded|BOOTSTRAP_SERVERS [DRIVER [CONFIG]], CONFIG for the pipe alone"""

import subprocess
import sys
import time

import gpu_worker as gw
import msgpack
import numpy

WARM, MEASURED = 20, 1000
ROUNDS = 3
X = numpy.arange(4, dtype="<f4")


def report(what, times_ms):
    measured = sorted(times_ms[WARM:])
    print(f"{MEASURED} jobs one after the other, {what}, ms: median {measured[MEASURED // 2]:.3f}, "
          f"99 % under {measured[MEASURED * 99 // 100]:.3f}, longest {measured[-1]:.3f}", flush=True)


def measure(run_one):
    for number in range(WARM + MEASURED):
        started = time.perf_counter()
        run_one(number)
        yield (time.perf_counter() - started) * 1000


def through(command):
    """Yields how long each job takes to the process's standard output, which may be a result or the job itself."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as process:
        answers = msgpack.Unpacker()

        def run_one(number):
            process.stdin.write(msgpack.packb(gw.job(
                f"job-{number}", buffers={"x": gw.upload(X), "y": gw.upload(X)},
                steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(X.size)], elements=X.size)], outputs=["y"])))
            while (answer := next(answers, None)) is None:
                answers.feed(process.stdout.read(1 << 16))
            if answer.get("status", "ok") != "ok":
                sys.exit(f"client_latency: {answer}")

        yield from measure(run_one)
        process.stdin.close()


def through_a_pipe(binary, driver, config):
    worker = [binary, "run", "--no-supervisor", "--driver", driver, "--jobs", "-", "--results", "-"]
    worker += ["--config", config] if config else []
    for _ in range(ROUNDS):
        report("through cat", list(through(["cat"])))
        report("worker", list(through(worker)))


def through_a_broker(binary, servers, driver):
    with gw.local(binary=binary, servers=servers, driver=driver) as client:
        saxpy = client.program("saxpy")
        report("worker", list(measure(lambda number: saxpy(a=2, x=X, y=X).result(timeout=60))))


def main(binary, way, driver="cpu", config=None):
    if way == "pipe":
        through_a_pipe(binary, driver, config)
    else:
        through_a_broker(binary, None if way == "embedded" else way, driver)


if __name__ == "__main__":
    main(*sys.argv[1:])
