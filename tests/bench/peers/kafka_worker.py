"""The worker that a user would write with confluent-kafka, msgpack and CuPy: it takes jobs of the program `bench` from a topic, runs
each, and answers with results like those of gpu-worker, at least once. Where there is no CuPy, or no GPU, NumPy does the work.

It runs until it is terminated. compare_kafka.py measures it beside gpu-worker.
usage: kafka_worker.py SERVERS GROUP JOBS_TOPIC RESULTS_TOPIC"""

import signal
import socket
import sys
import time

import confluent_kafka
import msgpack
import numpy

try:
    import cupy

    on_gpu = cupy.cuda.is_available()
except ImportError:
    on_gpu = False

MESSAGES_AT_ONCE, POLL_S = 1000, 0.1
CUDA = r"""
extern "C" __global__ void nothing(unsigned word) {}
extern "C" __global__ void add(const float *x, const float *y, float *z, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
"""
BLOCK = 256


class OnCuPy:
    def __init__(self):
        module = cupy.RawModule(code=CUDA)
        self.kernels = {name: module.get_function(name) for name in ("nothing", "add")}
        self.name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def nothing(self, buffers):
        self.kernels["nothing"]((1,), (1,), (numpy.uint32(0),))
        cupy.cuda.get_current_stream().synchronize()

    def add(self, buffers):
        x, y = (cupy.asarray(numpy.frombuffer(buffers[name]["data"], "<f4")) for name in ("x", "y"))
        z = cupy.zeros_like(x)
        self.kernels["add"](((x.size + BLOCK - 1) // BLOCK,), (BLOCK,), (x, y, z, numpy.uint32(x.size)))
        buffers["z"]["data"] = cupy.asnumpy(z).tobytes()


class OnNumPy:
    name = "NumPy"

    def nothing(self, buffers):
        pass

    def add(self, buffers):
        x, y = (numpy.frombuffer(buffers[name]["data"], "<f4") for name in ("x", "y"))
        buffers["z"]["data"] = (x + y).tobytes()


def answer(runner, message, host):
    """The result of a job, with what gpu-worker's has, so that the brokers have the same work."""
    begun_ns = time.monotonic_ns()
    job = msgpack.unpackb(message.value())
    buffers = job["buffers"]
    decoded_ns = time.monotonic_ns()
    for step in job["steps"]:
        getattr(runner, step["entry"])(buffers)
    ended_ns = time.monotonic_ns()
    outputs = [{"name": output["buffer"], "data": buffers[output["buffer"]]["data"]} for output in job["outputs"]]
    up = sum(len(buffer["data"]) for buffer in buffers.values() if "data" in buffer)
    down = sum(len(output["data"]) for output in outputs)
    return msgpack.packb({
        "v": 1, "id": job["id"], "status": "ok", "outputs": outputs,
        "telemetry": {
            "h2d_bytes": up - down, "d2h_bytes": down, "param_bytes": 4, "kernel_launches": len(job["steps"]), "static_hits": 0,
            "static_misses": 0, "static_bytes_saved": 0, "queue_ns": 0, "decode_ns": decoded_ns - begun_ns, "prepare_ns": 0,
            "stage_ns": 0, "enqueue_ns": 0, "wait_ns": ended_ns - decoded_ns, "wall_ns": ended_ns - begun_ns,
            "batch": {
                "id": message.offset(), "jobs": 1, "copies": 2, "h2d_bytes": up - down, "d2h_bytes": down, "launches": 1,
                "coalesced_launches": 0, "sync_points": 1,
            },
        },
        "source": {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()},
        "worker": {"host": host, "device": runner.name, "version": "0.1.0"},
    })  # fmt: skip


class Failures:
    """Of records that could not be delivered; the first ends the worker before it commits."""

    def __init__(self):
        self.first = None

    def note(self, error, message):
        self.first = self.first or error


def send(producer, topic, key, value, headers, failures):
    while True:
        try:
            producer.produce(topic, value, key=key, headers=headers, on_delivery=failures.note)
            break
        except BufferError:
            producer.poll(POLL_S)
    producer.poll(0)


def main(servers, group, jobs, results):
    runner, host, failures = OnCuPy() if on_gpu else OnNumPy(), socket.gethostname(), Failures()
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})
    consumer.subscribe([jobs])
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    while not stopping:
        messages = consumer.consume(MESSAGES_AT_ONCE, POLL_S)
        for message in messages:
            if message.error() is not None:
                sys.exit(f"kafka_worker: {message.error()}")
            source = f"{message.topic()}/{message.partition()}/{message.offset()}"
            headers = [("content-type", "application/msgpack"), ("gpu-worker-job-id", "bench"), ("gpu-worker-status", "ok"),
                       ("gpu-worker-source", source)]
            send(producer, results, message.key(), answer(runner, message, host), headers, failures)
        if messages:
            producer.flush()
            if failures.first is not None:
                sys.exit(f"kafka_worker: a result could not be delivered: {failures.first}")
            consumer.commit(asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
