"""No single message ends a worker: whatever can be polled is answered, on a real Apache Kafka with both deliveries.
usage: letters_test.py BUILD_FOLDER, with the broker's host:port in GPU_WORKER_TEST_KAFKA."""

import unittest

from worker_flow import KafkaFlowTest, headers_of, is_saxpy, lag, read_all, saxpy, unpack

import confluent_kafka
from confluent_kafka import admin
import gpu_worker as gw
import msgpack

DELIVERIES = ("at_least_once", "exactly_once")
LARGE = b"k" * 1_000_001  # over the 1,000,000 bytes that a record of our producer may have


class LettersTest(KafkaFlowTest):
    def setUp(self):
        super().setUp()
        self.wide = confluent_kafka.Producer({"bootstrap.servers": self.servers, "message.max.bytes": 1_048_000})
        # A broker that makes topics on demand makes none whose name differs from another's in a dot alone.
        self.missing = f"missing.{self.topics.group}"
        client = admin.AdminClient({"bootstrap.servers": self.servers})
        for future in client.create_topics([admin.NewTopic(f"missing_{self.topics.group}", 1, 1)]).values():
            future.result(30)

    def send(self, value, key=None, headers=None):
        self.wide.produce(self.topics.jobs, value, key=key, headers=headers)
        self.assertEqual(self.wide.flush(60), 0)

    def config(self, delivery, **more):
        config = super().config(delivery=delivery, commit_interval_ms="100ms", **more)
        config["kafka"]["producer"] = {"topic.metadata.propagation.max.ms": 2000}  # for the topic that never comes
        config["topics"]["reply_to"] = [self.missing]
        return config

    def answers(self):
        results = [(message, unpack(message)) for message in read_all(self.servers, self.topics.results)]
        return {result["id"]: (message, result) for message, result in results}

    def letters(self):
        """By their offset's message: what the header says where the letter has it."""
        return {headers_of(letter)["gpu-worker-job-id"] if "gpu-worker-job-id" in headers_of(letter) else "none": letter
                for letter in read_all(self.servers, self.topics.dead_letters)}

    def work(self, delivery):
        """One executor answers all there is, and is not started again."""
        worker = self.start_worker(self.config(delivery), f"worker-{delivery}", "--no-supervisor")
        self.wait_until(lambda: worker.status() is not None or lag(self.servers, self.topics) == 0, "the group's lag is 0")
        self.stop_well(worker)

    def answer(self, delivery, prefix):
        def job(name, **more):
            return msgpack.packb(saxpy(1) | {"id": f"{prefix}-{name}"} | more)

        broken = {"steps": [gw.step("nope", [], grid=[1])]}
        self.send(job("key"), key=LARGE)
        self.send(job("names"), headers=[("n" * 3000 + str(n), b"") for n in range(330)])
        self.send(job("trace"), headers=[("traceparent", LARGE)])
        self.send(job("broken-key", **broken), key=LARGE)
        self.send(b"\xc1", key=LARGE)
        self.send(job("reply", reply_to=self.missing))
        self.send(job("broken-reply", reply_to=self.missing, **broken))
        self.send(job("last"), key=b"key")
        self.work(delivery)

        answers, letters = self.answers(), self.letters()
        self.assertTrue(is_saxpy(answers[f"{prefix}-last"][1], 1), "the next job is answered")
        self.assertTrue(is_saxpy(answers[f"{prefix}-names"][1], 1), "long names are no matter of a result")
        codes = {name: answers[f"{prefix}-{name}"][1]["error"]["code"]
                 for name in ("key", "trace", "broken-key", "reply", "broken-reply")}
        self.assertEqual(codes, {"key": "publish_refused", "trace": "publish_refused", "reply": "publish_refused",
                                 "broken-key": "unknown_program", "broken-reply": "unknown_program"})
        self.assertIsNone(answers[f"{prefix}-key"][0].key(), "a key that fits no record")

        cuts = {name: headers_of(letters[f"{prefix}-{name}"]).get("dlq.truncated")
                for name in ("key", "trace", "broken-key", "reply", "broken-reply")}
        self.assertEqual(
            cuts, {"key": "key", "trace": "headers", "broken-key": "key", "reply": None, "broken-reply": None})
        self.assertEqual(unpack(letters[f"{prefix}-key"])["id"], f"{prefix}-key", "what fits is kept")
        none = headers_of(letters["none"])
        self.assertEqual((none["dlq.error.code"], none["dlq.truncated"]), ("bad_message", "key"))

    def test_large_keys_and_headers_and_a_missing_reply_to_end_no_worker(self):
        for delivery in DELIVERIES:
            with self.subTest(delivery):
                self.answer(delivery, delivery)

    def test_a_failed_job_with_large_headers_has_a_letter_without_them(self):
        broken = saxpy(1) | {"steps": [gw.step("nope", [], grid=[1])]}
        for delivery in DELIVERIES:
            with self.subTest(delivery):
                name = f"job-{delivery}"
                self.send(msgpack.packb(broken | {"id": name}), headers=[("small", b"1"), ("large", LARGE)])
                self.work(delivery)
                letter = headers_of(self.letters()[name])
                self.assertEqual((letter["dlq.truncated"], letter["small"]), ("headers", "1"))
                self.assertNotIn("large", letter)

    def test_of_many_headers_the_first_are_taken(self):
        broken = saxpy(1) | {"steps": [gw.step("nope", [], grid=[1])]}
        for delivery in DELIVERIES:
            with self.subTest(delivery):
                name = f"many-{delivery}"
                self.send(msgpack.packb(broken | {"id": name}), headers=[("h", b"")] * 100_000)
                self.work(delivery)
                letter = self.letters()[name]
                self.assertEqual(headers_of(letter)["dlq.truncated"], "headers")
                self.assertEqual(len([1 for header, _ in letter.headers() if header == "h"]), 256)


if __name__ == "__main__":
    unittest.main(verbosity=2)
