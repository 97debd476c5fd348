"""What brokers have said to be committed is read in the end, also where a broker was killed meanwhile and has forgotten
how its transactions were to end: storms and faults count on hanging_transactions.py there.
usage: hanging_test.py"""

import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "flow"))
from hanging_transactions import Hanging
from kafka_cluster import BRIEF, KafkaCluster

import confluent_kafka
import confluent_kafka.admin

TOPIC, PARTITIONS, PRODUCERS, PATIENCE_S = "hanging", 4, 24, 240


class HangingTest(unittest.TestCase):
    def setUp(self):
        self.cluster = KafkaCluster(1, BRIEF)
        self.addCleanup(self.cluster.down)
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.cluster.servers})
        for future in admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, 1)]).values():
            future.result(60)
        self.committed, self.is_first_committed = set(), threading.Event()

    def begin(self, number):
        producer = confluent_kafka.Producer(
            {"log_level": 2, "bootstrap.servers": self.cluster.servers, "transactional.id": f"hanging-{number}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
        self.assertEqual(producer.flush(60), 0)
        return producer

    def commit(self, number, producer):
        try:
            producer.commit_transaction(60)
            self.committed.add(number)
            self.is_first_committed.set()
        except confluent_kafka.KafkaException:  # the broker was away for too long
            pass

    def test_what_was_committed_is_read_though_the_broker_was_killed(self):
        threads = [threading.Thread(target=self.commit, args=(number, self.begin(number))) for number in range(PRODUCERS)]
        for thread in threads:
            thread.start()
        self.assertTrue(self.is_first_committed.wait(PATIENCE_S))
        self.cluster.kill()
        self.cluster.start()
        for thread in threads:
            thread.join()
        hanging = Hanging(self.cluster.servers, [TOPIC], PARTITIONS)
        reader = confluent_kafka.Consumer(
            {"log_level": 2, "bootstrap.servers": self.cluster.servers, "group.id": "reader", "enable.auto.commit": False})
        self.addCleanup(reader.close)
        reader.assign([confluent_kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        read, deadline = set(), time.monotonic() + PATIENCE_S
        while not read >= self.committed and time.monotonic() < deadline:
            message = reader.poll(1)
            if message is None:
                hanging.look()
            elif not message.error():
                read.add(int(message.value()))
        print(f"{len(self.committed)} committed, {len(read)} read, {hanging.ended} had been left hanging")
        self.assertEqual(self.committed - read, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
