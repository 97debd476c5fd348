#!/usr/bin/env python3
"""Answers the quickstart's jobs as a worker would, with the reference instead of a kernel, and can be made to err:
FAKE_FAULT=weights, loss, error or death spoils the last job, array or array_error the array job. Called as `gpu-worker run --config FILE`."""

import functools
import json
import os
import pathlib
import signal
import sys

import confluent_kafka
import logreg_reference
import msgpack
import numpy
import sweep

DATASET = sweep.read_dataset(pathlib.Path(__file__).parents[2] / "config/examples/breast_cancer.csv")


@functools.lru_cache(None)
def train(rate, l2, epochs):
    return logreg_reference.train(*DATASET.exact(), rate, l2, epochs)


def array_outputs_of(job):
    """What the single jobs have, one behind the other."""
    step = job["steps"][0]
    columns = [numpy.frombuffer(argument["each"]["f32"], "<f4").tolist() for argument in step["args"][4:6]]
    instances = []
    for rate, l2 in zip(*columns):
        args = [*step["args"][:4], {"f32": rate}, {"f32": l2}, *step["args"][6:]]
        instances.append(outputs_of({"steps": [{**step, "args": args}]}, None))
    whole = [{**outputs[0], "data": b"".join(output["data"] for output in outputs)} for outputs in zip(*instances)]
    whole[0]["shape"] = [len(instances), *whole[0]["shape"]]
    return whole


def outputs_of(job, fault):
    step = job["steps"][0]
    rate, l2 = (argument["f32"] for argument in step["args"][4:6])
    weights, loss, accuracy, _ = train(rate, l2, step["args"][8]["u32"])
    weights = weights * 1.5 if fault == "weights" else weights
    loss = float("nan") if fault == "loss" else loss
    scalars = [("loss", loss), ("accuracy", accuracy)]
    whole = {"name": "weights", "datatype": "FP32", "shape": [len(weights)], "data": weights.astype("<f4").tobytes()}
    return [whole, *({"name": name, "datatype": "FP32", "data": numpy.float32(value).tobytes()} for name, value in scalars)]


def answer(job, fault):
    if fault == "death":
        os._exit(7)
    if fault in ("error", "array_error"):
        error = {"code": "driver_error", "message": "no", "fix": "try again"}
        return {"id": job["id"], "status": "error", "error": error, "outputs": []}
    if "count" not in job:
        return {"id": job["id"], "status": "ok", "outputs": outputs_of(job, fault)}
    outputs = array_outputs_of(job)
    if fault == "array":
        outputs[1]["data"] = bytes(4) + outputs[1]["data"][4:]
    return {"id": job["id"], "status": "ok", "outputs": outputs, "telemetry": {"instances": job["count"]}}


def main():
    lines = [line for line in pathlib.Path(sys.argv[3]).read_text().splitlines() if not line.startswith("#")]
    config = {key: json.loads(value) for key, value in (line.split(": ", 1) for line in lines)}
    producer = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    address = f"{broker.host}:{broker.port}"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "fake", "auto.offset.reset": "earliest",
         "allow.auto.create.topics": True}
    )  # fmt: skip
    partitions = consumer.list_topics("gpu-jobs", timeout=30).topics["gpu-jobs"].partitions
    consumer.assign([confluent_kafka.TopicPartition("gpu-jobs", number, 0) for number in partitions])
    pathlib.Path(config["embedded"]["address_file"]).write_text(address)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    last = sweep.grid()[-1].id
    while True:
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        job = msgpack.unpackb(message.value())
        fault = os.environ.get("FAKE_FAULT", "")
        if ("count" in job) != fault.startswith("array") or not ("count" in job or job["id"].startswith(f"{last}:")):
            fault = None
        source = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
        result = msgpack.packb(answer(job, fault) | {"source": source})
        where = "/".join(map(str, source.values()))
        producer.produce("gpu-results", result, headers={"gpu-worker-job-id": job["id"], "gpu-worker-source": where})
        producer.poll(0)


if __name__ == "__main__":
    main()
