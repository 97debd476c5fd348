"""What a storm sends: good jobs, and whatever a sender may think of. Each message follows from the seed and its
number, with what may come of it."""

import copy
import dataclasses
import hashlib
import pathlib
import random
import sys

import msgpack
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
import gpu_worker as gw
from poison import CODES, poisonous, saxpy

OK, ERROR, LETTER = "ok", "error", "letter"  # a result; an error result and a dead letter; a dead letter alone
CONVICTIONS = {"worker_crash", "gpu_hang", "gpu_fault", "gpu_assert", "gpu_illegal_address", "gpu_stray_write"}
SUSPENDED = "suspended"
MUTANT_TIMEOUT_MS = 500  # what a mutant may cost that launches for ever
BLOB_COUNT, BLOB_ELEMENTS = 12, 16384
KEYS = 20
BOMB_BYTES = 16 << 20
RESULT_BYTES_MAX = 200_000  # of a message in the topic of results; some large results are refused there
INSTANCES_MAX = 200
# The kinds of messages, and how many of each among a number of them.
KINDS = {
    "small": 60, "large": 3, "chain": 6, "static": 8, "static follower": 6, "tiny static": 6, "blob": 5, "reply": 4, "same id": 2,
    "resident": 3, "bytes mutant": 10, "tree mutant": 16, "undecodable": 8, "wrong": 8, "claim": 5, "odd time": 4, "missing": 3,
    "forbidden reply": 2, "many headers": 1, "large key": 1, "large headers": 1, "resident abuse": 3, "bomb": 0.3, "poison": 0.6,
    "array": 6, "array mutant": 6, "wrong array": 5, "poison array": 0.3}
# What stands in places where something else belongs.
ODDITIES = [
    None, True, -1, 0, 2**31, 2**32 - 1, 2**63, 2**64 - 1, -2**63, 1.5, float("nan"), float("inf"), "", "x", "y" * 70000,
    "\x00", b"", b"\x00" * 5000, [], {}, [[[[[[]]]]]], ["x"] * 300, {"static": "sha256:" + "0" * 64}, msgpack.ExtType(5, b"e")]


@dataclasses.dataclass
class Message:
    kind: str
    value: bytes | None
    outcomes: frozenset
    key: bytes | None = None
    headers: list = dataclasses.field(default_factory=list)
    y: float | bytes | None = None  # what each element of the output is, or all of it, where that is known
    culprits: tuple = ()  # instances of an array that end executors
    codes: frozenset | None = None  # those that an error may have; None: all but convictions
    own_fault: frozenset = frozenset()  # convictions that it may bring upon itself
    is_replied: bool = False  # on the topic of replies
    is_bomb: bool = False


def blob_array(index):
    return numpy.full(BLOB_ELEMENTS, index, "<f4")


def blobs():
    """What the blob store has: bytes by digest."""
    return {hashlib.sha256(array.tobytes()).hexdigest(): array.tobytes() for array in map(blob_array, range(BLOB_COUNT))}


class Messages:
    def __init__(self, seed, topics, without=()):
        self._seed = seed
        self._topics = topics
        self._weights = {kind: weight for kind, weight in KINDS.items() if kind not in without}

    def make(self, number):
        chance = random.Random(f"{self._seed}/{number}")
        (kind,) = chance.choices(list(self._weights), list(self._weights.values()))
        message = getattr(self, "_" + kind.replace(" ", "_"))(chance, number)
        message.headers = [("storm", str(number).encode()), *message.headers]
        return message

    # good jobs: each has its right result, whatever happens

    def _good(self, kind, job, y, key=None, **more):
        return Message(kind, msgpack.packb(job), frozenset([OK]), key, y=y, **more)

    @staticmethod
    def _some_key(chance):
        return chance.choice([None, f"key-{chance.randrange(KEYS)}".encode()])

    def _saxpy(self, chance, number, size=4):
        return saxpy(f"storm-{number}", number % (1 << 20), size), 2 * (number % (1 << 20)) + 1

    def _small(self, chance, number):
        job, y = self._saxpy(chance, number, chance.randint(1, 64))
        return self._good("small", job, y, self._some_key(chance))

    def _large(self, chance, number):
        size = chance.randint(10_000, 100_000)
        job, y = self._saxpy(chance, number, size)
        message = self._good("large", job, y, self._some_key(chance), codes=frozenset(["publish_refused"]))
        if 4 * size > RESULT_BYTES_MAX:
            message.outcomes = frozenset([ERROR])
        elif 4 * size > RESULT_BYTES_MAX - 2000:  # what stands around the output
            message.outcomes = frozenset([OK, ERROR])
        return message

    def _population(self, number, count):
        """Instance i has 2 (number + i) + 1, after a kernel that a health of 0 kills."""
        values = number % (1 << 20) + numpy.arange(count, dtype="<f4")
        job = gw.job(
            f"storm-{number}", count=count, outputs=["y"],
            buffers={"health": {"bytes": 4, "each": True, "data": numpy.ones(count, "<u4").tobytes()},
                     "x": {"bytes": 4, "each": True, "data": values.tobytes()},
                     "y": {"bytes": 4, "each": True, "datatype": "FP32", "shape": [1], "data": numpy.ones(count, "<f4").tobytes()}},
            steps=[gw.step("poison", ["health"], entry="failed_assert", grid=[1]),
                   gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(1)], elements=1)])
        return job, 2 * values + 1

    def _array(self, chance, number):
        job, y = self._population(number, chance.randint(1, INSTANCES_MAX))
        return self._good("array", job, y.tobytes(), self._some_key(chance))

    def _chain(self, chance, number):
        job, _ = self._saxpy(chance, number, 8)
        times = chance.randint(2, 9)
        job["steps"][0]["iterations"] = times
        return self._good("chain", job, 2 * times * (number % (1 << 18)) + 1, self._some_key(chance)) \
            if number < 1 << 18 else self._small(chance, number)

    def _same_id(self, chance, number):
        job, y = self._saxpy(chance, number)
        return self._good("same id", job | {"id": "everybody"}, y, self._some_key(chance))

    def _reply(self, chance, number):
        job, y = self._saxpy(chance, number)
        return self._good("reply", job | {"reply_to": self._topics.replies}, y, self._some_key(chance), is_replied=True)

    def _of_shared_x(self, number, x, x_value):
        """y = 2 x + 1 over an x that is not the job's own."""
        size = x["bytes"] // 4
        return gw.job(
            f"storm-{number}", buffers={"x": x, "y": gw.upload(numpy.ones(size, "<f4"))},
            steps=[gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(size)], elements=size)], outputs=["y"]), 2 * x_value + 1

    def _static(self, chance, number):
        group = number // 100
        job, y = self._of_shared_x(number, gw.static(numpy.full(4096, group, "<f4"), with_data=True), group)
        return self._good("static", job, y, f"static-{group}".encode())

    def _static_follower(self, chance, number):
        """Of whoever came before with the bytes; nobody did, or a death took them along: the sender is told."""
        group = number // 100
        job, y = self._of_shared_x(number, gw.static(numpy.full(4096, group, "<f4")), group)
        message = self._good("static follower", job, y, f"static-{group}".encode(), codes=frozenset(["static_missing"]))
        message.outcomes = frozenset([OK, ERROR])
        return message

    def _tiny_static(self, chance, number):
        job, y = self._of_shared_x(number, gw.static(numpy.full(1, number, "<f4"), with_data=True), number % (1 << 22))
        return self._good("tiny static", job, y, self._some_key(chance))

    def _blob(self, chance, number):
        index = chance.randrange(BLOB_COUNT)
        job, y = self._of_shared_x(number, gw.blob(blob_array(index)), index)
        return self._good("blob", job, y, self._some_key(chance))

    def _resident(self, chance, number):
        """One that is only read, so that it is the same whoever created it; without `ordering: key` it is refused."""
        key = f"key-{chance.randrange(KEYS)}"
        value = int(key.removeprefix("key-"))
        x = {"bytes": 256, "resident": "x", "init": {"data": numpy.full(64, value, "<f4").tobytes()}}
        job, y = self._of_shared_x(number, x, value)
        return Message("resident", msgpack.packb(job), frozenset([OK, ERROR]), key.encode(), y=y,
                       codes=frozenset(["bad_job", "unsupported", "resident_gone"]))

    # whatever else senders think of

    def _hostile(self, kind, value, outcomes, key=b"hostile", **more):
        return Message(kind, value, frozenset(outcomes), key, **more)

    def _mutable(self, chance, number):
        make = chance.choice([self._small, self._chain, self._tiny_static, self._blob, self._resident])
        return msgpack.unpackb(make(chance, number).value) | {"timeout_ms": MUTANT_TIMEOUT_MS}

    def _mutant(self, kind, value, own_fault=("gpu_hang", SUSPENDED)):
        """A mutant may be a right job, a wrong one, or none; launches without end are its own fault."""
        return self._hostile(kind, value, [OK, ERROR, LETTER], b"mutant", own_fault=frozenset(own_fault))

    def _bytes_mutant(self, chance, number):
        value = bytearray(msgpack.packb(self._mutable(chance, number)))
        for _ in range(chance.randint(1, 8)):
            place = chance.randrange(len(value))
            what = chance.randrange(4)
            if what == 0:
                value[place] = chance.randrange(256)
            elif what == 1:
                value[place] ^= 1 << chance.randrange(8)
            elif what == 2:
                value[place:place] = chance.randbytes(chance.randint(1, 5))
            elif len(value) > 8:
                del value[place:place + chance.randint(1, 5)]
        return self._mutant("bytes mutant", bytes(value))

    def _places(self, tree):
        """(container, key) of every value in it."""
        items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
        for key, value in items:
            yield tree, key
            yield from self._places(value)

    def _tree_mutant(self, chance, number):
        return self._mutant("tree mutant", msgpack.packb(self._mutated(chance, self._mutable(chance, number))))

    def _mutated(self, chance, tree):
        for _ in range(chance.randint(1, 3)):
            container, key = chance.choice(list(self._places(tree)))
            if key == "id" or key == "elements" and chance.random() < 0.95:  # each of those costs its time-out
                continue
            what = chance.randrange(5)
            if what == 0 and isinstance(container, dict):
                del container[key]
            elif what == 1 and isinstance(container, dict):
                container[chance.choice(["v", "data", "static", "resident", "x", "zz"])] = copy.deepcopy(container[key])
            elif what == 2 and isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            else:
                container[key] = copy.deepcopy(chance.choice(ODDITIES))
            if not list(self._places(tree)):
                break
        return tree

    def _array_mutant(self, chance, number):
        """Also of the health that its kernel asks for."""
        job, _ = self._population(number, chance.randint(1, 9))
        tree = self._mutated(chance, job | {"timeout_ms": MUTANT_TIMEOUT_MS})
        return self._mutant("array mutant", msgpack.packb(tree), CONVICTIONS | {SUSPENDED})

    def _undecodable(self, chance, number):
        good = msgpack.packb(self._saxpy(chance, number)[0])
        value = chance.choice([
            None, b"", b"\xc1", b"\xc1" + chance.randbytes(200), good[:-chance.randint(1, len(good) - 1)], good + b"\x00",
            b"\x91" * 5000 + b"\xc0", b"\x81\xa2id" + b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff\xa2id",
            b"\x81\xa2id\xdb\xff\xff\xff\xffabc", b"\x81\xa2id\xc7\x01\x05e", 
            b"\x81\xa2id\xa0", b"\x81\xa2id\xa4\xff\xfe\xfd\xfc", b"\x93\x01\x02\x03", b"\x07", b"a word"])
        return self._hostile("undecodable", value, [LETTER], chance.choice([None, b"", b"hostile", b"\xff\xfe"]))

    def _wrong(self, chance, number):
        job, _ = self._saxpy(chance, number)
        wrong = chance.choice([
            {"steps": [gw.step("no-such-program", ["x"], grid=[1])]}, {"steps": [gw.step("saxpy", ["x"], elements=4)]},
            {"steps": []}, {"v": 2}, {"outputs": ["z"]}, {"buffers": {}}, {"surplus": 1},
            {"steps": [gw.step("../saxpy", ["x"], grid=[1])]},
            {"steps": [gw.step("saxpy", [gw.f32(2), "x", "y", gw.f64(4)], elements=4)]},
            {"steps": [gw.step("saxpy", [gw.f32(2), "x", "y", gw.u32(4)], elements=4, iterations=2**32 - 1)]}])
        return self._hostile("wrong", msgpack.packb(job | wrong), [ERROR])

    def _wrong_array(self, chance, number):
        job, _ = self._population(number, 3)
        x, steps = job["buffers"]["x"], job["steps"]
        wrong = chance.choice([
            {"count": odd} for odd in (0, -1, 2, 4, 2**31, 2**32 - 1, 2**64 - 1, 1.5, "3", None, [])] + [
            {"buffers": job["buffers"] | {"x": odd}} for odd in (
                x | {"each": 3}, x | {"data": x["data"][:-1]}, x | {"bytes": 2**62}, x | {"bytes": 2**64 - 1},
                {"bytes": 4, "each": True, "static": "sha256:" + "0" * 64})] + [
            {"buffers": {"health": job["buffers"]["health"], "x": x, "y": {"bytes": 4, "fill": 0}}},
            {"count": 2_000_000, "buffers": {name: {"bytes": 4, "each": True, "fill": 0} for name in job["buffers"]}},
            {"count": 1_000_000, "buffers": {name: {"bytes": 4096, "each": True, "fill": 0} for name in job["buffers"]}},
            {"steps": [steps[0], gw.step("saxpy", [{"each": {"f32": b"12345678"}}, "x", "y", gw.u32(1)], elements=1)]},
            {"steps": [steps[0] | {"iterations": 2**32 - 1}]}])
        return self._hostile("wrong array", msgpack.packb(job | wrong), [ERROR])

    def _claim(self, chance, number):
        job, _ = self._saxpy(chance, number)
        job["buffers"]["z"] = {"bytes": chance.choice([2**62, 2**64 - 1, 1 << 40, (1 << 50) - 1])}
        return self._hostile("claim", msgpack.packb(job), [ERROR])

    def _odd_time(self, chance, number):
        job, _ = self._saxpy(chance, number)
        odd = chance.choice([{"timeout_ms": 2**32 - 1}, {"timeout_ms": 0}, {"timeout_ms": 1}, {"deadline_ms": 1}])
        return self._hostile("odd time", msgpack.packb(job | odd), [ERROR])

    def _missing(self, chance, number):
        nobodys = {"bytes": 16, chance.choice(["static", "blob"]): "sha256:" + hashlib.sha256(str(number).encode()).hexdigest()}
        job, _ = self._of_shared_x(number, nobodys, 0)
        if chance.random() < 0.5:  # a digest of other bytes
            job["buffers"]["x"] = nobodys | {"data": b"0123456789abcdef"}
        return self._hostile("missing", msgpack.packb(job), [ERROR])

    def _forbidden_reply(self, chance, number):
        job, _ = self._saxpy(chance, number)
        topic = chance.choice([self._topics.missing, "somebody-elses", self._topics.jobs])
        return self._hostile("forbidden reply", msgpack.packb(job | {"reply_to": topic}), [ERROR])

    def _many_headers(self, chance, number):
        job, y = self._saxpy(chance, number)
        headers = [(f"h{n % 7}", b"") for n in range(chance.choice([100, 3000, 30_000]))]
        return self._hostile("many headers", msgpack.packb(job), [OK, ERROR, LETTER], headers=headers, y=y)

    def _large_headers(self, chance, number):
        job, y = self._saxpy(chance, number)
        headers = [("large", b"\xfe" * chance.choice([10_000, 500_000, 990_000]))]
        return self._hostile("large headers", msgpack.packb(job), [OK, ERROR, LETTER], headers=headers, y=y)

    def _large_key(self, chance, number):
        job, y = self._saxpy(chance, number)
        key = b"\xfe" * chance.choice([50_000, 500_000, 999_000, 1_000_001])
        return self._hostile("large key", chance.choice([msgpack.packb(job), b"\xc1"]), [OK, ERROR, LETTER], key, y=y)

    def _resident_abuse(self, chance, number):
        job, _ = self._saxpy(chance, number)
        for n in range(30):
            job["buffers"][f"r{n}"] = {"bytes": chance.choice([0, 4, 1 << 14]), "resident": f"{'n' * 100}-{number}-{n}",
                                       "init": {"fill": 0}}
        return self._hostile("resident abuse", msgpack.packb(job), [OK, ERROR, LETTER], f"{number}".encode() * 100)

    def _bomb(self, chance, number):
        return self._hostile("bomb", b"\x00" * BOMB_BYTES, [LETTER], is_bomb=True)

    def _poison(self, chance, number):
        entry = chance.choice([entry for entry, codes in CODES.items() if "cpu" in codes])
        return self._hostile(f"poison {entry}", msgpack.packb(poisonous(f"storm-{number}", entry)), [ERROR],
                             chance.choice([None, f"poison-{chance.randrange(4)}".encode()]),
                             codes=frozenset(CONVICTIONS | {SUSPENDED}), own_fault=frozenset(CONVICTIONS))

    def _poison_array(self, chance, number):
        """The array's culprits are named and have zeros; so many deaths besides may befall it that it fails as a whole."""
        job, y = self._population(number, chance.randint(2, INSTANCES_MAX))
        culprits = tuple(sorted(chance.sample(range(len(y)), chance.randint(1, min(3, len(y) - 1)))))
        health = numpy.ones(len(y), "<u4")
        health[list(culprits)] = y[list(culprits)] = 0
        job["buffers"]["health"]["data"] = health.tobytes()
        return self._hostile("poison array", msgpack.packb(job), [ERROR], f"poison-{chance.randrange(4)}".encode(),
                             codes=frozenset(CONVICTIONS | {SUSPENDED, "instances_failed"}), own_fault=frozenset(CONVICTIONS),
                             y=y.tobytes(), culprits=culprits)
