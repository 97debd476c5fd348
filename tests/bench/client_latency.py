"""How long one job takes on an idle worker, one after the other: through a pipe from the message to its result, through a broker
from the call of the Python client to its answer.
usage: client_latency.py BINARY pipe|embedded|BOOTSTRAP_SERVERS [DRIVER [CONFIG]], CONFIG for the pipe alone"""

import subprocess
import sys
import time

import gpu_worker as gw
import msgpack
import numpy

WARM, MEASURED = 20, 1000
X = numpy.arange(4, dtype="<f4")


def report(times_ms):
    measured = sorted(times_ms[WARM:])
    print(f"{MEASURED} jobs one after the other, ms: median {measured[MEASURED // 2]:.3f}, "
          f"99 % under {measured[MEASURED * 99 // 100]:.3f}, longest {measured[-1]:.3f}")


def measure(run_one):
    for number in range(WARM + MEASURED):
        started = time.perf_counter()
        run_one(number)
        yield (time.perf_counter() - started) * 1000


def through_a_pipe(binary, driver, config):
    command = [binary, "run", "--no-supervisor", "--driver", driver, "--jobs", "-", "--results", "-"]
    command += ["--config", config] if config else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as worker:
        results = msgpack.Unpacker()

        def run_one(number):
            worker.stdin.write(msgpack.packb(gw.job(
                f"job-{number}", buffers={"x": gw.upload(X), "y": gw.upload(X)},
                steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(X.size)], elements=X.size)], outputs=["y"])))
            while (result := next(results, None)) is None:
                results.feed(worker.stdout.read(1 << 16))
            if result["status"] != "ok":
                sys.exit(f"client_latency: {result}")

        report(list(measure(run_one)))
        worker.stdin.close()


def through_a_broker(binary, servers, driver):
    with gw.local(binary=binary, servers=servers, driver=driver) as client:
        saxpy = client.program("saxpy")
        report(list(measure(lambda number: saxpy(a=2, x=X, y=X).result(timeout=60))))


def main(binary, way, driver="cpu", config=None):
    if way == "pipe":
        through_a_pipe(binary, driver, config)
    else:
        through_a_broker(binary, None if way == "embedded" else way, driver)


if __name__ == "__main__":
    main(*sys.argv[1:])
