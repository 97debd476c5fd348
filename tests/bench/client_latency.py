"""How long one job takes on an idle worker, from the call of the Python client to its answer.
usage: client_latency.py BINARY [BOOTSTRAP_SERVERS]: with the embedded broker, or through a Kafka"""

import sys
import time

import gpu_worker as gw
import numpy

WARM, MEASURED = 20, 200


def main(binary, servers=None):
    x = numpy.arange(4, dtype="<f4")
    with gw.local(binary=binary, servers=servers) as client:
        saxpy = client.program("saxpy")
        times_ms = []
        for _ in range(WARM + MEASURED):
            started = time.perf_counter()
            saxpy(a=2, x=x, y=x).result(timeout=60)
            times_ms.append((time.perf_counter() - started) * 1000)
    measured = sorted(times_ms[WARM:])
    print(f"{MEASURED} jobs one after the other, ms: median {measured[MEASURED // 2]:.1f}, "
          f"90 % under {measured[MEASURED * 9 // 10]:.1f}, longest {measured[-1]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
