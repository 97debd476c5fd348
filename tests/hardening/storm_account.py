"""What became of each message of a storm: read from the topics, compared with what may come of it."""

import collections
import struct

import msgpack

from kafka_topics import Reader
from storm_messages import CONVICTIONS, ERROR, LETTER, OK

Answer = collections.namedtuple("Answer", "topic status code outputs failed")
FORGED = "storm-forged"  # a header of results that no worker has written


def headers_of(message):
    return dict(message.headers() or [])


class Account:
    def __init__(self, servers, topics, partitions, messages, delivery):
        self._readers = {name: Reader(servers, name, partitions) for name in
                         (topics.jobs, topics.results, topics.replies, topics.dead_letters)}
        self._servers = servers
        self._topics = topics
        self._messages = messages
        self._is_exact = delivery == "exactly_once"
        self._numbers = {}  # by partition and offset
        self._sent = {}  # the same, of those that have not been settled
        self._come = set()  # their numbers, settled ones too
        self._answers = collections.defaultdict(list)
        self._letters = collections.defaultdict(list)
        self._settled = collections.Counter()  # the highest settled offset of each partition
        self.counts = collections.Counter()
        self.problems = []

    def _read(self):
        for message in self._readers[self._topics.jobs].read():
            number = int(headers_of(message)["storm"])
            place = message.partition(), message.offset()
            self._numbers[place] = self._sent[place] = number
            self._come.add(number)
        for topic in self._topics.results, self._topics.replies:
            for message in self._readers[topic].read():
                if FORGED in headers_of(message):
                    self.counts["forged"] += 1
                    continue
                result = msgpack.unpackb(message.value(), strict_map_key=False)
                source = result["source"]["partition"], result["source"]["offset"]
                self._answers[source].append(Answer(
                    topic, result["status"], result.get("error", {}).get("code"),
                    tuple(output.get("data") for output in result["outputs"]),
                    tuple(each["instance"] for each in result.get("failed", []))))
        for message in self._readers[self._topics.dead_letters].read():
            headers = headers_of(message)
            source = int(headers["dlq.source.partition"]), int(headers["dlq.source.offset"])
            self._letters[source].append(headers["dlq.error.code"].decode())

    def reopen(self, partitions):
        """`partitions`: of the job topic, now."""
        for topic, reader in self._readers.items():
            reader.reopen(partitions if topic == self._topics.jobs else 0)

    def begin_anew(self, partitions):
        """The job topic was created anew, with so many partitions, after everything in it was settled."""
        self._readers[self._topics.jobs].close()
        self._readers[self._topics.jobs] = Reader(self._servers, self._topics.jobs, partitions)
        self._settled.clear()
        self._numbers.clear()

    def ask_again(self, partition, first, end):
        """The group's offset of a partition was moved back: so much of what was settled is answered once more."""
        self._sent |= {(partition, offset): self._numbers[partition, offset] for offset in range(first, end)}

    def unanswered(self, delivered):
        """How many messages have neither a result nor a dead letter yet, of those in the topic and of those that the
        brokers say that they have taken."""
        self._read()
        unread = len(delivered - self._come)
        return unread + sum(place not in self._answers and place not in self._letters for place in self._sent)

    def settle(self):
        """Every message so far must have been answered: judges all, and forgets them."""
        self._read()
        for place in sorted((self._answers.keys() | self._letters.keys()) - self._sent.keys()):
            if place[1] > self._settled[place[0]] or self._is_exact:
                self.problems.append(f"{place}: answered again, or was never sent: {self._answers[place]} {self._letters[place]}")
        for place, number in self._sent.items():
            message = self._messages.make(number)
            self.counts[message.kind] += 1
            for problem in self._judge(message, self._answers[place], self._letters[place]):
                self.problems.append(f"message {number} ({message.kind}) at {place}: {problem}")
            self._settled[place[0]] = max(self._settled[place[0]], place[1])
        for held in self._sent, self._answers, self._letters:
            held.clear()

    def _judge(self, message, answers, letters):
        errors = [answer for answer in answers if answer.status in ("error", "partial")]
        rights = [answer for answer in answers if answer.status == "ok"]
        codes = {answer.code for answer in errors} | set(letters)
        self._count(rights, errors, letters)
        if not answers and not letters:
            yield "lost"
            return
        came = {what for what, some in ((OK, rights), (ERROR, errors), (LETTER, not answers)) if some}
        if not came <= message.outcomes:
            yield f"{'/'.join(sorted(came))} instead of {'/'.join(sorted(message.outcomes))}, codes {sorted(codes)}"
        if self._is_exact and (len(answers) > 1 or len(letters) > 1):
            yield f"{len(answers)} results and {len(letters)} dead letters under exactly_once"
        # Answered again after a death between the two, under at_least_once, it may have come out well.
        if errors and not letters and codes != {"cancelled"} and (self._is_exact or not rights):
            yield f"an error without a dead letter: {sorted(codes)}"
        if letters and rights and not errors and (self._is_exact or message.outcomes == {OK}):
            yield f"a result and a dead letter: {sorted(codes)}"
        if message.codes is not None and not codes <= message.codes:
            yield f"codes {sorted(codes)} instead of {sorted(message.codes)}"
        if codes & CONVICTIONS - message.own_fault:
            yield f"convicted of {sorted(codes & CONVICTIONS)}"
        partial = [answer for answer in errors if answer.status == "partial"]
        if message.culprits and any(answer.failed != message.culprits for answer in partial):
            yield f"{[answer.failed for answer in partial]} are named, and the culprits are {message.culprits}"
        if message.y is not None and not all(self._is_right(message.y, answer) for answer in rights + partial):
            yield f"a wrong result, not all {message.y}"
        if message.is_replied and any(answer.topic != self._topics.replies for answer in rights):
            yield "its result stands in another topic"
        if message.y is not None and len({answer.outputs for answer in rights}) > 1:
            yield "results that differ from each other"

    def _count(self, rights, errors, letters):
        self.counts["ok"] += bool(rights)
        self.counts["errors"] += bool(errors)
        self.counts["letters alone"] += not rights and not errors and bool(letters)
        self.counts["duplicates"] += max(0, len(rights) + len(errors) - 1) + max(0, len(letters) - 1)

    @staticmethod
    def _is_right(y, answer):
        (data,) = answer.outputs
        if isinstance(y, bytes):
            return data == y
        element = struct.pack("<f", y)
        return data == element * (len(data) // 4) and len(data) > 0

    def close(self):
        for reader in self._readers.values():
            reader.close()
