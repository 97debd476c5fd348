#!/usr/bin/env python3
"""The Python client: what it builds, stores and reads back."""

import hashlib
import os
import pathlib
import tempfile
import unittest

import confluent_kafka
import gpu_worker as gw
import msgpack
import numpy


class Buffers(unittest.TestCase):
    def test_an_upload_carries_shape_type_and_little_endian_rows(self):
        array = numpy.arange(6, dtype=">u2").reshape(2, 3).T
        buffer = gw.upload(array)
        self.assertEqual({"bytes": 12, "datatype": "UINT16", "shape": [3, 2]}, {k: buffer[k] for k in buffer if k != "data"})
        self.assertEqual(bytes([0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5, 0]), buffer["data"])

    def test_a_static_is_named_by_the_digest_of_the_bytes_that_an_upload_would_carry(self):
        array = numpy.ones((3, 4), "<f4").T
        expected = "sha256:" + hashlib.sha256(gw.upload(array)["data"]).hexdigest()
        self.assertEqual(expected, gw.static(array)["static"])
        self.assertNotIn("data", gw.static(array))
        self.assertEqual(gw.upload(array)["data"], gw.static(array, with_data=True)["data"])

    def test_a_scalar_array_has_an_empty_shape(self):
        self.assertEqual([], gw.upload(numpy.float32(1))["shape"])


class Stores(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_blob_stands_under_its_digest_and_nothing_else_is_left(self):
        array = numpy.arange(1000, dtype="<i8")
        store = gw.BlobStore(self.folder)
        name = store.put(array)
        os.utime(store.path(name), (1, 1))
        store.put(array)
        self.assertGreater(store.path(name).stat().st_mtime, 1)
        hexadecimal = name.removeprefix("sha256:")
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        self.assertEqual([self.folder / hexadecimal[:2] / hexadecimal], files)
        self.assertEqual(hexadecimal, hashlib.sha256(files[0].read_bytes()).hexdigest())

    def test_jobs_written_to_a_file_are_read_back_one_by_one(self):
        jobs = [gw.job(f"job-{i}", {"a": gw.zeros([4], "<f4")}, [], ["a"]) for i in range(3)]
        gw.write_jobs(self.folder / "jobs", jobs)
        self.assertEqual(jobs, list(gw.read_results(self.folder / "jobs")))


class Results(unittest.TestCase):
    def test_an_output_comes_back_as_the_array_it_was(self):
        array = numpy.arange(6, dtype="<f8").reshape(2, 3)
        outputs = [gw.upload(array) | {"name": "whole"}, {"name": "part", "data": b"\x01\x02"}]
        result = msgpack.unpackb(msgpack.packb({"id": "x", "status": "ok", "outputs": outputs}))
        numpy.testing.assert_array_equal(array, gw.arrays(result)["whole"])
        numpy.testing.assert_array_equal([1, 2], gw.arrays(result)["part"])

    def test_an_output_in_the_blob_store_is_fetched_from_there(self):
        array = numpy.arange(6, dtype="<f8").reshape(2, 3)
        with tempfile.TemporaryDirectory() as folder:
            store = gw.BlobStore(folder)
            output = {"name": "large", "datatype": "FP64", "shape": [2, 3], "blob": store.put(array)}
            result = {"id": "x", "status": "ok", "outputs": [output]}
            numpy.testing.assert_array_equal(array, gw.arrays(result, store)["large"])
            with self.assertRaisesRegex(ValueError, "pass the store"):
                gw.arrays(result)
            store.path(output["blob"]).write_bytes(b"spoiled")
            with self.assertRaisesRegex(ValueError, "does not hold sha256:"):
                gw.arrays(result, store)

    def test_a_failed_job_raises_what_the_worker_said(self):
        error = {"code": "bad_launch", "message": "too wide", "fix": "use a smaller block"}
        with self.assertRaisesRegex(gw.JobFailed, "x: bad_launch: too wide use a smaller block"):
            gw.arrays({"id": "x", "status": "error", "error": error, "outputs": []})


class Kafka(unittest.TestCase):
    """Against the broker that librdkafka brings for tests; what a worker would say is said by hand."""

    def setUp(self):
        options = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3}
        self.broker = confluent_kafka.Producer(options)

    def address(self):
        (broker,) = self.broker.list_topics(timeout=30).brokers.values()
        return f"{broker.host}:{broker.port}"

    def client(self):
        client = gw.KafkaClient(self.address(), "jobs", "results")
        self.addCleanup(client.close)
        return client

    def jobs(self, count):
        """The jobs that were sent, as (id, where it stands)."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.address(), "group.id": "worker"})
        partitions = consumer.list_topics("jobs", timeout=30).topics["jobs"].partitions
        consumer.assign([confluent_kafka.TopicPartition("jobs", number, 0) for number in partitions])
        found = []
        while len(found) < count:
            for message in consumer.consume(1000, 0.1):
                source = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
                found.append((msgpack.unpackb(message.value())["id"], source))
        consumer.close()
        return found

    def answer(self, *jobs):
        """All to one partition, so that they come in this order."""
        for id, source in jobs:
            result = {"id": id, "status": "ok", "outputs": [], "source": source}
            self.broker.produce("results", msgpack.packb(result), partition=0)
        self.assertEqual(0, self.broker.flush(30))

    def test_a_client_sees_each_of_its_results_once_and_nobody_elses(self):
        client = self.client()
        client.submit([gw.job(id, {}, [], []) for id in ("a", "b")])
        a, b = sorted(self.jobs(2), key=lambda job: job[0])
        self.answer(("a", {"topic": "jobs", "partition": 0, "offset": 1000}), b, b, a)
        self.assertEqual([b, a], [(result["id"], result["source"]) for result in client.results(["a", "b"], 30)])

    def test_what_a_client_did_not_send_it_does_not_wait_for(self):
        with self.assertRaisesRegex(ValueError, "has not sent"):
            self.client().results(["a"], 30)

    def test_a_client_that_stops_reading_loses_no_result(self):
        client = self.client()
        client.submit([gw.job(id, {}, [], []) for id in ("a", "b", "c")])
        a, b, c = sorted(self.jobs(3), key=lambda job: job[0])
        self.answer(c, b, a)
        self.assertEqual("a", next(client.results(["a"], 30))["id"])
        self.assertEqual("c", next(client.results(["a", "b", "c"][1:], 30))["id"])
        self.assertEqual(["b"], [result["id"] for result in client.results(["b"], 30)])

    def test_an_id_that_is_sent_twice_has_two_results(self):
        client = self.client()
        results = client.run(gw.job(id, {}, [], []) for id in ("a", "a"))
        self.answer(*self.jobs(2))
        self.assertEqual(["a", "a"], [result["id"] for result in results])

    def test_who_waits_is_told_when_nobody_will_answer(self):
        def on_wait():
            raise ConnectionError("the worker is gone")

        client = self.client()
        client.submit([gw.job("a", {}, [], [])])
        with self.assertRaisesRegex(ConnectionError, "gone"):
            list(client.results(["a"], 30, on_wait))


if __name__ == "__main__":
    unittest.main()
