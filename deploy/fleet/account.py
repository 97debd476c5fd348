"""What became of each job of a fleet, as a reader of committed messages sees it."""

import collections
import struct
import threading
import time

import msgpack

from kafka_topics import Reader

CLOCKS_AGREE_S = 1  # between a result's own date and what this process did
SHOWN = 10

# made_at: as the worker dated it. seen_s: when it could be read, by the monotonic clock.
Answer = collections.namedtuple("Answer", "topic partition made_at seen_s is_right revision")


def read_answer(message):
    result = msgpack.unpackb(message.value())
    number = int(result["id"].removeprefix("job-"))
    is_right, revision = False, None
    if result["status"] == "ok":
        tripled, revision = struct.unpack("<2I", result["outputs"][0]["data"])
        is_right = tripled == 3 * number + 1
    return number, Answer(message.topic(), result["source"]["partition"], message.timestamp()[1] / 1000,
                          time.monotonic(), is_right, revision)


class Watch(threading.Thread):
    """Follows the topics of results, one for each revision's configuration, and that of dead letters."""

    def __init__(self, servers, results, dead_letters, partitions):
        super().__init__(daemon=True)
        self._readers = [Reader(servers, topic, partitions) for topic in (*results, dead_letters)]
        self._dead_letters = dead_letters
        self._is_over = threading.Event()
        self.answers = collections.defaultdict(list)  # by the number of the job
        self.letters = 0

    def run(self):
        while not self._is_over.is_set():
            for reader in self._readers:
                for message in reader.read():
                    self._take(message)

    def _take(self, message):
        if message.topic() == self._dead_letters:
            self.letters += 1
            return
        number, answer = read_answer(message)
        self.answers[number].append(answer)

    def answered(self):
        return len(self.answers)

    def all(self):
        return [(number, answer) for number, answers in list(self.answers.items()) for answer in list(answers)]

    def end(self):
        self._is_over.set()
        if self.is_alive():
            self.join()
        for reader in self._readers:
            reader.close()


# What was done to the fleet, and when: seconds since 1970. lost_partitions are those of the pod that was lost.
Events = collections.namedtuple("Events", "upgrade_began_at upgrade_ended_at lost_at lost_partitions")


class Account:
    """Judges every job that was sent by the answers to it. `topic_of` names the topic of each revision's results."""

    def __init__(self, sent_at, watch, events, is_exact, topic_of):
        self._events, self._is_exact, self._topic_of = events, is_exact, topic_of
        self.counts = collections.Counter(sent=len(sent_at), dead_letters=watch.letters)
        self.problems = [f"{watch.letters} dead letters"] if watch.letters else []
        strangers = watch.answers.keys() - sent_at.keys()
        if strangers:
            self._complain(min(strangers), "answered, and never sent")
        for number, sent in sent_at.items():
            answers = watch.answers.get(number, [])
            self.counts["lost"] += not answers
            self.counts["duplicated"] += max(0, len(answers) - 1)
            self.counts["failed"] += sum(not answer.is_right for answer in answers)
            for answer in answers:
                self.counts[f"revision {answer.revision}"] += 1
            for problem in self._judge(sent, answers):
                self._complain(number, problem)

    def _complain(self, number, problem):
        if len(self.problems) < SHOWN:
            self.problems.append(f"job-{number}: {problem}")

    def _judge(self, sent, answers):
        if not answers:
            yield "lost"
        for answer in answers:
            if not answer.is_right:
                yield f"a wrong answer or an error: {answer}"
            else:
                yield from self._judge_revision(sent, answer)
        for again in sorted(answers, key=lambda answer: answer.made_at)[1:]:
            if self._is_exact:
                yield f"answered again: {again}"
            elif again.partition not in self._events.lost_partitions or again.made_at < self._events.lost_at - CLOCKS_AGREE_S:
                yield f"answered again, and not because a pod was lost: {again}"

    def _judge_revision(self, sent, answer):
        events = self._events
        if answer.topic != self._topic_of[answer.revision]:
            yield f"the program of revision {answer.revision} with another revision's configuration: {answer}"
        if answer.revision == 2 and answer.made_at < events.upgrade_began_at - CLOCKS_AGREE_S:
            yield f"answered by revision 2 before the upgrade: {answer}"
        if answer.revision == 1 and max(answer.made_at, sent) > events.upgrade_ended_at + CLOCKS_AGREE_S:
            yield f"answered by revision 1 after the upgrade: {answer}"
