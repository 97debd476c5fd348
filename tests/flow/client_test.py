"""The Python client with real workers: beside it, and through the Kafka of GPU_WORKER_TEST_KAFKA where there is one.
usage: client_test.py BUILD_FOLDER [TEST...]; CLIENT_JOBS says how many jobs the test of killed workers sends."""

import os
import pathlib
import signal
import threading
import time
import traceback
import unittest

from kafka_topics import admin_of, create_topics, read_all
from worker_flow import BINARY, PATIENCE_S, FlowTest, Topics

import confluent_kafka.admin
import gpu_worker as gw
import numpy

SERVERS = os.environ.get("GPU_WORKER_TEST_KAFKA")
PASSWORD = os.environ.get("KAFKA_PASSWORD")
JOBS = int(os.environ.get("CLIENT_JOBS", 4000))
THREADS, KILLS = 8, 2
X = numpy.arange(4, dtype="<f4")


class ClientTest(FlowTest):
    def local(self, **options):
        client = gw.local(binary=BINARY, **options)
        self.addCleanup(client.close, wait=False)
        return client


class LocalTest(ClientTest):
    @classmethod
    def setUpClass(cls):
        cls.plain = gw.local(binary=BINARY)
        cls.addClassCleanup(cls.plain.close)

    def test_a_program_is_a_function_of_arrays(self):
        client = self.plain
        saxpy = client.program("saxpy")
        self.assertEqual([1, 3, 5, 7], saxpy(a=2, x=X, y=numpy.ones(4, "<f4")).result(PATIENCE_S)["y"].tolist())
        sums = client.program("reduce_sum").options(grid=1)(x=X, sums=1)
        self.assertEqual([6], sums.result(PATIENCE_S)["sums"].tolist())
        with self.assertRaisesRegex(ValueError, "blocks is 2, and sums has 1"):
            client.program("reduce_sum").options(grid=2)(x=X, sums=1)

    def test_a_map_is_stacked_in_order_over_a_static_that_workers_are_given_once(self):
        client = self.plain
        table = client.static(X)
        rows = numpy.arange(400, dtype="<f4").reshape(100, 4)
        whole = client.program("saxpy").map(a=numpy.arange(100), x=table, y=gw.rows(rows))
        numpy.testing.assert_array_equal(
            rows + numpy.arange(100)[:, None] * X, whole.result(PATIENCE_S)["y"])

    def test_rows_of_a_map_are_instances_of_arrays_and_come_back_as_single_jobs_do(self):
        for client in (self.plain, self.local(blobs=None, config={"blobs": {}})):
            table = client.static(X)
            rows = numpy.arange(400, dtype="<f4").reshape(100, 4)
            part = {"buffer": "y", "offset": 4, "bytes": 8, "as": "part"}
            saxpy = client.program("saxpy").options(outputs=["y", part])
            both = [saxpy.options(instances=most).map(a=numpy.arange(100) / 3, x=table, y=gw.rows(rows)) for most in (40, 1)]
            array, singles = [whole.result(PATIENCE_S) for whole in both]
            for name in ("y", "part"):
                self.assertEqual((singles[name].shape, singles[name].dtype), (array[name].shape, array[name].dtype))
                self.assertEqual(singles[name].tobytes(), array[name].tobytes())
                for row, single in zip(*(whole.futures for whole in both)):
                    numpy.testing.assert_array_equal(row.result()[name], single.result()[name])
            counts = [future.answer["telemetry"].get("instances") for future in both[0].futures]
            self.assertEqual([40] * 80 + [20] * 20, counts)

    def test_a_table_of_three_is_whole_for_each_row_whatever_their_number(self):
        saxpy, table = self.plain.program("saxpy"), X[:3]
        for count in (1, 2, 3, 4):
            a, rows = numpy.arange(count, dtype="<f4"), numpy.ones((count, 3), "<f4")
            for shared in (self.plain.static(table), gw.upload(table)):
                whole = saxpy.map(a=a, x=shared, y=gw.rows(rows))
                numpy.testing.assert_array_equal(rows + a[:, None] * table, whole.result(PATIENCE_S)["y"])

    def test_what_a_worker_refuses_fails_the_rows_of_an_array_as_it_does_single_jobs(self):
        saxpy = self.plain.program("saxpy").options(block=4096)
        both = [saxpy.options(instances=most).map(a=numpy.ones(3), x=gw.upload(X), y=gw.rows(numpy.ones((3, 4), "<f4")))
                for most in (3, 1)]
        array, singles = [[str(future.exception(PATIENCE_S)) for future in whole.futures] for whole in both]
        self.assertIn("saxpy[2]: bad_launch: steps[0]: block[0] is 4096", array[2])
        self.assertEqual(singles, array)

    def test_without_a_blob_store_jobs_bring_what_a_worker_misses(self):
        client = self.local(blobs=None, config={"blobs": {}})
        saxpy = client.program("saxpy")
        table = client.static(X)
        for future in [saxpy(a=a, x=table, y=numpy.zeros(4, "<f4")) for a in range(100)]:
            future.result(PATIENCE_S)

    def test_a_large_array_and_a_large_result_go_through_the_blob_store(self):
        client = self.local(config={"results": {"inline_max_bytes": 1024}}, inline_bytes=1024)
        large = numpy.arange(100_000, dtype="<f4")
        future = client.program("saxpy")(a=1, x=large, y=large)
        numpy.testing.assert_array_equal(2 * large, future.result(PATIENCE_S)["y"])
        self.assertIn("blob", future.answer["outputs"][0])

    def test_more_bytes_than_the_broker_inside_a_worker_keeps_are_sent_and_answered(self):
        rows = numpy.arange(200, dtype="<f4").repeat(40_000).reshape(200, -1)  # 32 MB; it keeps 20 MiB
        saxpy = self.plain.program("saxpy")
        for sent, outputs in ((rows, ["y"]), (rows, [{"buffer": "y", "bytes": 4}])):
            whole = saxpy.options(outputs=outputs).map(a=numpy.ones(200), x=gw.zeros([40_000], "<f4"), y=gw.rows(sent))
            got = whole.result(PATIENCE_S)["y"]
            numpy.testing.assert_array_equal(rows[:, 0], got if got.ndim == 1 else got[:, 0])

    def stopped(self, send):
        """A long job that was stopped while it ran. One that had not begun by then is cancelled, and another gets more time."""
        wait_s = 0.2
        while wait_s < PATIENCE_S:
            future = send()
            time.sleep(wait_s)
            self.assertTrue(future.stop())
            failure = future.exception(PATIENCE_S)
            if failure is None:
                return future
            self.assertEqual("cancelled", failure.code)
            wait_s *= 2
        self.fail("no job ever begins")

    def test_long_jobs_end_after_their_rounds_or_when_they_are_stopped(self):
        client = self.local(config={"topics": {"control": "gpu-control"}}, control="gpu-control")
        rows = {"x": gw.upload(X), "y": gw.zeros([4], "<f4")}
        saxpy = client.program("saxpy").options(repeat=50, time_ms=3_600_000)
        future, whole = saxpy(a=1, **rows), saxpy.map(a=[1, 2, 3], **rows)
        numpy.testing.assert_array_equal(50 * X, future.result(PATIENCE_S)["y"])
        self.assertEqual((50, "repeat"), (future.rounds, future.ended))
        numpy.testing.assert_array_equal(50 * numpy.outer([1, 2, 3], X), whole.result(PATIENCE_S)["y"])
        self.assertEqual(([50] * 3, ["repeat"] * 3), (whole.rounds.tolist(), whole.ended.tolist()))
        endless = saxpy.options(repeat=2**32 - 1)
        single = self.stopped(lambda: endless(a=0, **rows))
        self.assertEqual((True, "stop"), (single.rounds >= 1, single.ended))
        several = self.stopped(lambda: endless.map(a=[0, 0], **rows))
        self.assertEqual((True, ["stop"] * 2), ((several.rounds >= 1).all(), several.ended.tolist()))
        short = endless.options(time_ms=1)(a=0, **rows)
        short.result(PATIENCE_S)
        self.assertEqual("time", short.ended)

    def test_long_jobs_show_how_far_they_are_while_they_run(self):
        topics = {"control": "gpu-control", "progress": "gpu-progress"}
        client = self.local(config={"topics": topics}, **topics)
        rows = {"x": gw.upload(X), "y": gw.zeros([4], "<f4")}
        saxpy = client.program("saxpy").options(repeat=2**32 - 1, progress=gw.progress(100, ["y"]))
        each = numpy.array([[1], [2], [3]])
        for future, live, a in ((saxpy(a=1, **rows), 1, 1), (saxpy.map(a=each.ravel(), **rows), 3, each)):
            rounds = []
            for shown in future.progress(PATIENCE_S):
                numpy.testing.assert_array_equal(shown.rounds * a * X, shown["y"])
                self.assertEqual(1, shown.attempt)
                self.assertIn(shown.live, (live, 0) if len(rounds) >= 3 else (live,))  # a map that is answered has none
                rounds.append(shown.rounds)
                if len(rounds) == 3:
                    self.assertTrue(future.stop())
            self.assertGreaterEqual(len(rounds), 3)
            self.assertEqual(sorted(set(rounds)), rounds)
            self.assertGreaterEqual(numpy.max(future.rounds), rounds[-1])
            numpy.testing.assert_array_equal(numpy.max(future.rounds) * a * X, future.result(PATIENCE_S)["y"])

    def test_a_forked_child_is_answered_by_the_worker_of_its_parent(self):
        saxpy = self.plain.program("saxpy")
        saxpy(a=1, x=X, y=X).result(PATIENCE_S)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if saxpy(a=1, x=X, y=X).result(PATIENCE_S)["y"].tolist() == [0, 2, 4, 6] else 2
            except BaseException:  # os._exit() would leave it unsaid
                traceback.print_exc()
            finally:
                os._exit(status)
        self.assertEqual(0, os.waitpid(child, 0)[1])

    def test_a_worker_that_ends_fails_what_is_unanswered_and_says_why(self):
        client = self.local(config={"cpu_driver": {"faults": "cuLaunchKernel:slow=1s@*"}})
        future = client.program("saxpy")(a=1, x=X, y=X)
        os.killpg(client.worker._process.pid, signal.SIGKILL)
        with self.assertRaisesRegex(ConnectionError, "the worker ended with status"):
            future.result(PATIENCE_S)

    def test_a_configuration_that_the_worker_refuses_is_shown(self):
        with self.assertRaisesRegex(ConnectionError, "lanez"):
            self.local(config={"lanez": 3})


@unittest.skipUnless(SERVERS and not PASSWORD, "it wants the Kafka of with_kafka")
class KafkaTest(ClientTest):
    def setUp(self):
        super().setUp()
        self.topics = Topics(SERVERS)
        self.config = self.topics.config(SERVERS)
        self.config["kafka"]["consumer"] = {"session.timeout.ms": 6000}  # what a killed worker had waits for so long

    def client(self, **options):
        client = gw.Client(SERVERS, self.topics.jobs, self.topics.results, binary=str(BINARY), **options)
        self.addCleanup(client.close, wait=False)
        return client

    def test_each_future_gets_its_own_result_though_workers_are_killed(self):
        client = self.client()
        saxpy = client.program("saxpy")
        table = client.static(numpy.ones(4, "<f4"))
        wrong, done = [], []

        def send(first):
            numbers = range(first, JOBS, THREADS)
            futures = {number: saxpy(a=1, x=table, y=numpy.full(4, number, "<f4")) for number in numbers}
            for number, future in futures.items():
                if future.result(PATIENCE_S)["y"].tolist() != [number + 1] * 4:
                    wrong.append(number)
                done.append(number)

        threads = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
        workers = [self.start_worker(self.config, f"worker-{n}") for n in range(2)]
        for thread in threads:
            thread.start()
        for kill in range(KILLS):
            answered = (kill + 1) * JOBS // (KILLS + 2)
            self.wait_until(lambda: len(done), f"{answered} jobs are answered", PATIENCE_S * JOBS / 4000,
                            lambda found: found >= answered or not any(map(threading.Thread.is_alive, threads)))
            workers.pop(0).kill_with_executors()
            workers.append(self.start_worker(self.config, f"worker-{kill + 2}"))
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        self.assertCountEqual(range(JOBS), done)

    def test_residents_outlive_the_executor_that_had_them(self):
        worker = self.start_worker({**self.config, "ordering": "key"})
        client = self.client()
        saxpy = client.program("saxpy").options(outputs=["y"])
        with client.resident("y", init=numpy.zeros(4, "<f4"), key="model") as y:
            for step in range(6):
                total = saxpy(a=1, x=X, y=y).result(PATIENCE_S)["y"]
                numpy.testing.assert_array_equal((step + 1) * X, total)
                if step == 2:
                    os.kill(worker.executors()[0], signal.SIGKILL)

    def test_a_worker_beside_meets_its_client_at_a_kafka_with_its_own_settings(self):
        config = {"topics": self.config["topics"], "kafka": {"group": self.topics.group}}
        client = self.local(servers=SERVERS, config=config, jobs=self.topics.jobs, results=self.topics.results)
        self.assertEqual([0, 2, 4, 6], client.program("saxpy")(a=1, x=X, y=X).result(PATIENCE_S)["y"].tolist())
        self.assertIn(self.topics.group, client.worker.config.read_text())

    def test_results_in_a_partition_that_was_added_later_are_read(self):
        client = self.client()
        client._link._refresh_at = 0
        new = confluent_kafka.admin.NewPartitions(self.topics.results, 5)
        admin_of(SERVERS).create_partitions([new])[self.topics.results].result(PATIENCE_S)

        def look():
            client._link._refresh_at = 0
            return len(client._link._next)
        self.wait_until(look, "the fifth is found", is_met=lambda found: found == 5)
        self.start_worker(self.config)
        saxpy = client.program("saxpy")
        futures = [saxpy.options(key=f"key {n}")(a=1, x=X, y=X) for n in range(50)]
        for future in futures:
            future.result(PATIENCE_S)

    def check_reads_topic_created_anew(self, partitions):
        """The client fetches nothing until each partition has more results than there were before: its offsets are there."""
        producer = confluent_kafka.Producer({"bootstrap.servers": SERVERS})
        for partition in range(self.topics.partitions):
            producer.produce(self.topics.results, b"of somebody else", partition=partition)
        producer.flush()
        client = self.client(kafka={"allow.auto.create.topics": False})  # the test alone creates it
        saxpy, consumer = client.program("saxpy"), client._link._consumer
        consumer.pause(consumer.assignment())
        with self.assertLogs("gpu_worker", "WARNING") as said:
            admin_of(SERVERS).delete_topics([self.topics.results])[self.topics.results].result(PATIENCE_S)
            create_topics(SERVERS, [self.topics.results], partitions, 1)
            self.start_worker(self.config)
            futures = [saxpy.options(key=f"key {n}")(a=1, x=X, y=X) for n in range(50)]
            self.wait_until(lambda: len(read_all(SERVERS, self.topics.results)), "all are answered", is_met=lambda n: n == 50)
            client._link._refresh_at = 0
            consumer.resume(consumer.assignment())
            for future in futures:
                future.result(PATIENCE_S)
            self.wait_until(lambda: "".join(said.output), "it is said", is_met=lambda text: "was created anew" in text)

    def test_results_in_a_topic_that_was_created_anew_are_read_from_its_start(self):
        self.check_reads_topic_created_anew(self.topics.partitions)

    def test_results_in_a_topic_that_was_created_anew_with_fewer_partitions_are_read(self):
        self.check_reads_topic_created_anew(2)

    def test_jobs_whose_results_kafka_deleted_before_they_were_read_fail_and_later_ones_do_not(self):
        self.start_worker(self.config)
        client = self.client()
        saxpy, consumer = client.program("saxpy"), client._link._consumer
        consumer.pause(consumer.assignment())
        future = saxpy(a=1, x=X, y=X)
        (result,) = self.wait_until(lambda: read_all(SERVERS, self.topics.results), "it is answered", is_met=len)
        end = confluent_kafka.TopicPartition(self.topics.results, result.partition(), result.offset() + 1)
        (deleted,) = admin_of(SERVERS).delete_records([end]).values()
        deleted.result(PATIENCE_S)
        consumer.resume(consumer.assignment())
        with self.assertRaisesRegex(gw.ResultsLost, "of results were deleted before they were read.*retention.ms"):
            future.result(PATIENCE_S)
        self.assertEqual([0, 2, 4, 6], saxpy(a=1, x=X, y=X).result(PATIENCE_S)["y"].tolist())

    def test_progress_comes_while_results_wait_for_their_transaction(self):
        topics = {"control": self.topics.control, "progress": self.topics.progress}
        self.start_worker({**self.config, "topics": self.config["topics"] | topics, "delivery": "exactly_once"})
        client = self.client(**topics)
        saxpy = client.program("saxpy").options(repeat=2**32 - 1, key="k", progress=gw.progress(100, ["y"]))
        future = saxpy(a=1, x=X, y=gw.zeros([4], "<f4"))
        rounds = []
        for shown in future.progress(PATIENCE_S):
            numpy.testing.assert_array_equal(shown.rounds * X, shown["y"])
            rounds.append(shown.rounds)
            if len(rounds) == 2:
                future.stop()
        self.assertEqual("stop", future.ended)
        self.assertGreaterEqual(future.rounds, rounds[-1])
        for message in read_all(SERVERS, self.topics.progress):
            self.assertEqual((b"k", [("content-type", b"application/msgpack")]), (message.key(), message.headers()))

    def test_a_client_may_have_a_topic_of_its_own(self):
        self.config["topics"]["reply_to"] = [self.topics.control]
        self.start_worker(self.config)
        client = gw.Client(SERVERS, self.topics.jobs, self.topics.control, reply_to=True, binary=str(BINARY))
        self.addCleanup(client.close)
        self.assertEqual([0, 2, 4, 6], client.program("saxpy")(a=1, x=X, y=X).result(PATIENCE_S)["y"].tolist())


@unittest.skipUnless(PASSWORD, "it wants the Kafka of with_secure_kafka")
class SecureKafkaTest(ClientTest):
    def test_any_setting_of_confluent_kafka_is_passed_on(self):
        topics = Topics(SERVERS)
        self.start_worker(topics.config(SERVERS))
        host, port = SERVERS.split(",")[0].split(":")
        secure = {
            "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "worker", "sasl.password": PASSWORD,
            "ssl.ca.location": str(pathlib.Path(os.environ["GPU_WORKER_TEST_KAFKA_DIR"], "tls/ca.pem")), "log_level": 2}
        servers = f"{host}:{int(port) + 4}"
        with gw.Client(servers, topics.jobs, topics.results, kafka=secure, binary=str(BINARY)) as client:
            self.assertEqual([0, 2, 4, 6], client.program("saxpy")(a=1, x=X, y=X).result(PATIENCE_S)["y"].tolist())
        with self.assertRaisesRegex(ConnectionError, "(?i)authentication"):
            gw.Client(servers, topics.jobs, topics.results, kafka={**secure, "sasl.password": "wrong"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
