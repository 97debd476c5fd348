#!/usr/bin/env python3
"""The Python client, and what long jobs show of themselves while they run."""

import asyncio
import concurrent.futures
import gc
import os
import time
import tracemalloc
import unittest
import unittest.mock

import check_job
import gpu_worker as gw
import msgpack
import numpy
from by_hand import PATIENCE_S, run_forked
from client_test import BATCHED, ClientTest, X, echo, long
from gpu_worker import Program
from gpu_worker.watch import Newest

EVERY = gw.progress(100, ["x"])


def output_of(*numbers):
    """The output x of long(), or of a map's rows y, as a worker shows it."""
    return [{"name": "x", "datatype": "INT64", "shape": [len(numbers)], "data": numpy.array(numbers, "<i8").tobytes()}]


class Spelling(unittest.TestCase):
    def test_a_job_asks_for_progress_as_a_worker_takes_it(self):
        part = {"buffer": "x", "offset": 4, "as": "high"}
        job = long(progress=gw.progress(every_ms=500, outputs=["x", part]))
        self.assertEqual({"every_ms": 500, "outputs": [{"buffer": "x"}, part]}, job["progress"])
        self.assertEqual(job["progress"], long(progress={"every_ms": 500, "outputs": ["x", part]})["progress"])
        buffers = {"x": gw.upload(X), "done": gw.zeros((), "<u4")}
        self.assertEqual(("ok", ""), check_job.verdict(gw.encode({**job, "buffers": buffers})))
        with self.assertRaisesRegex(TypeError, "every_s"):
            long(progress={"every_s": 1})

    def jobs_of(self, rows, **options):
        """What a map sends: its rows are y."""
        sent = []
        sink = unittest.mock.Mock(submit=lambda job, *_: sent.append(job), store=None, gather=lambda futures: futures)
        saxpy = Program(sink, [BATCHED], "saxpy").options(**options)
        saxpy.map(a=1, x=gw.upload(X), y=gw.rows(numpy.zeros((rows, 4), "<f4")))
        return sent

    def test_a_program_asks_for_what_it_has(self):
        (job,) = self.jobs_of(3, repeat=5, progress=gw.progress(100, ["y"]))
        self.assertEqual((3, 5, gw.progress(100, ["y"])), (job["count"], job["repeat"], job["progress"]))
        self.assertEqual(("ok", ""), check_job.verdict(gw.encode({**job, "id": "fit"})))
        with self.assertRaisesRegex(TypeError, "how many rounds"):
            self.jobs_of(3, progress=gw.progress(100))
        with self.assertRaisesRegex(TypeError, "`progress` names 'z', which is no buffer"):
            self.jobs_of(3, repeat=5, progress=gw.progress(100, ["z"]))

    def test_a_message_of_a_map_has_no_more_rows_than_progress_has_room_for(self):
        """A row has 16 bytes; it shows 4 of them, or all, or what all rows share."""
        part = {"buffer": "y", "bytes": 4}
        both = ["y", {**part, "as": "p"}]
        for outputs, counts in (([part], [10_000]), (["y"], [4096, 4096, 1808]), (both, [3276] * 3 + [172])):
            sent = self.jobs_of(10_000, repeat=5, progress=gw.progress(100, outputs))
            self.assertEqual(counts, [job["count"] for job in sent])
        shared = self.jobs_of(3, repeat=5, progress=gw.progress(100, ["x"]))
        self.assertEqual([None] * 3, [job.get("count") for job in shared])


class ProgressTest(ClientTest):
    def begin(self, *jobs, **options):
        """Futures of long jobs, which the worker has and does not answer."""
        client = self.start(lambda job: [], **{"progress": "progress", "programs": [BATCHED], **options})
        futures = [client.submit(job) for job in jobs or [long(progress=EVERY)]]
        self.await_jobs(len(futures))
        return futures

    def await_jobs(self, count):
        until = time.monotonic() + PATIENCE_S
        while len(self.worker.sources) < count:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def answer(self, future, rounds=100):
        (result,) = echo(next(job for job in self.worker.jobs if job["id"] == future.id))
        self.worker.answer(future.id, {**result, "rounds": rounds, "ended": "until"})
        future.result(PATIENCE_S)


class Watching(ProgressTest):
    def test_a_long_job_shows_how_far_it_is_until_it_is_answered(self):
        (future,) = self.begin()
        shown = future.progress(PATIENCE_S)
        for rounds in (1, 7, 99):
            self.worker.show(future.id, rounds=rounds, outputs=output_of(rounds))
            found = next(shown)
            self.assertEqual((1, rounds, 1, ["x"]), (found.attempt, found.rounds, found.live, list(found.arrays)))
            self.assertEqual(([rounds], "<i8"), (found["x"].tolist(), found["x"].dtype))
        self.answer(future)
        self.assertEqual([], list(shown))
        self.assertEqual(2, int(future.result()["x"][0]))

    def test_who_follows_gets_the_newest_and_nothing_older(self):
        (future,) = self.begin()
        first = future.progress(PATIENCE_S)
        for attempt, rounds in ((1, 5), (1, 3), (1, 5), (2, 1), (1, 99), (2, 1), (2, 4)):
            self.worker.show(future.id, attempt=attempt, rounds=rounds, outputs=output_of(attempt))
        seen = []
        while not seen or seen[-1] != (2, 4):
            found = next(first)
            seen.append((found.attempt, found.rounds))
        self.assertEqual(seen, [place for place in ((1, 5), (2, 1), (2, 4)) if place in seen])
        second = next(future.progress(PATIENCE_S))
        self.assertEqual((2, 4), (second.attempt, second.rounds))

    def test_what_is_not_newer_takes_no_place(self):
        newest, kept = Newest(), []
        places = ("a", 1, 5), ("a", 1, 4), ("a", 1, 5), ("a", 1, 6), ("a", 2, 1), ("a", 1, 9), ("b", 1, 1)
        for id, attempt, rounds in places:
            shown = gw.Progress(attempt, rounds, 1, {})
            newest.put(id, shown)
            kept.append(newest.shown is shown)
        self.assertEqual([True, False, False, True, True, False, True], kept)

    def test_what_nobody_reads_is_forgotten(self):
        (future,) = self.begin(long(10_000, progress=EVERY))
        reader = future.progress(PATIENCE_S)
        self.worker.show(future.id, rounds=1, outputs=output_of(1))
        next(reader)
        for rounds in range(2, 2001):
            self.worker.show(future.id, rounds=rounds, outputs=output_of(rounds))
        other = future.progress(PATIENCE_S)
        while next(other).rounds < 2000:
            pass
        self.assertEqual(2000, next(reader).rounds)
        gc.collect()
        self.assertEqual(1, sum(isinstance(one, gw.Progress) for one in gc.get_objects()))

    def test_waiting_ends_in_time_and_with_the_job_however_that_ends(self):
        failing, cancelled, silent = self.begin(*[long(progress=EVERY)] * 3)
        with self.assertRaises(concurrent.futures.TimeoutError):
            next(failing.progress(0.05))
        with concurrent.futures.ThreadPoolExecutor() as threads:
            waiting = [threads.submit(list, future.progress(PATIENCE_S)) for future in (failing, cancelled, silent)]
            error = {"code": "bad_launch", "message": "no"}
            self.worker.answer(failing.id, {"status": "error", "error": error})
            cancelled.cancel()
            self.answer(silent)
            self.assertEqual([[], [], []], [one.result(PATIENCE_S) for one in waiting])
        self.worker.show(silent.id, outputs=output_of(1))
        with self.assertRaises(gw.JobFailed):
            failing.result(PATIENCE_S)

    def test_a_job_that_is_sent_again_begins_anew(self):
        """A worker that lacks its static answers so; the next message has the bytes, and another id."""
        missing = {"code": "static_missing", "message": "no", "fix": "", "retry": "sender", "attempts": 1}
        client = self.start(lambda job: [], progress="progress")
        table = client.static(X)
        future = client.submit({**long(progress=EVERY), "buffers": {**long()["buffers"], "t": table}})
        shown = future.progress(PATIENCE_S)
        self.await_jobs(1)
        before = future.id
        self.worker.show(before, rounds=50, outputs=output_of(1))
        self.assertEqual(50, next(shown).rounds)
        self.worker.answer(before, {"status": "error", "error": missing})
        self.await_jobs(2)
        self.assertNotEqual(before, future.id)
        self.worker.show(before, rounds=60, outputs=output_of(1))
        self.worker.show(future.id, rounds=2, outputs=output_of(1))
        self.assertEqual(2, next(shown).rounds)

    def test_a_coroutine_follows_its_jobs(self):
        futures = self.begin(*[long(progress=EVERY)] * 3)

        async def follow(future):
            rounds = []
            async for shown in future.progress(PATIENCE_S):
                rounds.append(shown.rounds)
                if shown.rounds < 3:
                    self.worker.show(future.id, rounds=shown.rounds + 1, outputs=output_of(1))
                else:
                    self.answer_later(future)
            return rounds

        async def run():
            with self.assertRaises(asyncio.TimeoutError):
                await futures[0].progress(0.05).__anext__()
            for future in futures:
                self.worker.show(future.id, outputs=output_of(1))
            return await asyncio.gather(*map(follow, futures))

        self.assertEqual([[1, 2, 3]] * 3, asyncio.run(asyncio.wait_for(run(), PATIENCE_S)))

    def answer_later(self, future):
        (result,) = echo(next(job for job in self.worker.jobs if job["id"] == future.id))
        self.worker.answer(future.id, {**result, "rounds": 3, "ended": "until"})

    def begin_map(self, instances):
        """Three rows, and a function that says what one of their messages shows."""
        client = self.start(lambda job: [], progress="progress", programs=[BATCHED])
        fit = client.program("saxpy").options(repeat=100, progress=gw.progress(100, ["y"]), instances=instances)
        whole = fit.map(a=[1, 2, 3], x=gw.upload(X), y=gw.rows(numpy.zeros((3, 4), "<f4")))
        self.await_jobs(len(whole.messages))

        def show(place, rounds, live, *numbers):
            rows = numpy.repeat(numpy.array(numbers, "<f4"), 4)
            shape = [4] if instances == 1 else [len(numbers), 4]
            output = {"name": "y", "datatype": "FP32", "shape": shape, "data": rows.tobytes()}
            self.worker.show(whole.messages[place].id, rounds=rounds, live=live, outputs=[output])
            return next(shown)
        shown = whole.progress(PATIENCE_S)
        return whole, show, shown

    def test_a_map_counts_the_rows_that_are_not_done_over_all_messages(self):
        whole, show, shown = self.begin_map(2)
        first = show(0, 10, 1, 7, 8)
        self.assertEqual((1, 10, 2, {}), (first.attempt, first.rounds, first.live, first.arrays))
        second = show(1, 4, 1, 9)
        self.assertEqual((10, 2), (second.rounds, second.live))
        self.assertEqual([[7] * 4, [8] * 4, [9] * 4], second["y"].tolist())
        self.answer_rows(whole.messages[1], 1)
        self.assertEqual(1, next(shown).live)
        self.answer_rows(whole.messages[0], 2)
        self.assertEqual([], list(shown))
        with self.assertRaisesRegex(ValueError, r"saxpy\[0\] shows nothing: it is one row of an array"):
            whole.futures[0].progress()
        self.assertEqual(10, next(whole.messages[0].progress()).rounds)

    def answer_rows(self, message, count):
        output = {"name": "y", "datatype": "FP32", "shape": [count, 4], "data": bytes(16 * count)}
        ends = {"rounds": b"\5\0\0\0" * count, "ended": b"\2" * count}
        self.worker.answer(message.id, {"outputs": [output], "telemetry": {"instances": count}, **ends})

    def test_rows_that_are_single_jobs_are_stacked_as_well(self):
        _, show, _ = self.begin_map(1)
        self.assertEqual([3, 3], [show(place, 1, 1, place).live for place in (0, 1)])
        self.assertEqual([[0] * 4, [1] * 4, [2] * 4], show(2, 1, 1, 2)["y"].tolist())

    def test_a_map_of_one_message_shows_what_that_shows(self):
        _, show, _ = self.begin_map(3)
        found = show(0, 10, 2, 7, 8, 9)
        self.assertEqual((10, 2, (3, 4)), (found.rounds, found.live, found["y"].shape))

    def test_who_cannot_hear_of_progress_is_told(self):
        silent, asking = self.begin(long(), long(progress=EVERY))
        deaf = self.client().submit(long(progress=EVERY))
        with self.assertRaisesRegex(ValueError, "fit shows nothing: it takes a job with `progress`, and a client"):
            silent.progress()
        with self.assertRaisesRegex(ValueError, "fit shows nothing"):
            deaf.progress()
        self.assertIsNotNone(asking.progress())

    def test_a_topic_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(ConnectionError, "topic nowhere: "), \
                unittest.mock.patch("gpu_worker.feed.START_TIMEOUT_S", 0.5):
            self.start(progress="nowhere", kafka={"allow.auto.create.topics": False})

    def test_in_a_forked_child_nobody_waits_for_jobs_of_the_parent(self):
        (future,) = self.begin()
        before = future.progress(PATIENCE_S)
        with future._newest._lock, before._news._cond:  # as another thread may have them just then
            status = run_forked(lambda: self.assertEqual(([], []), (list(before), list(future.progress()))))
        self.assertEqual(0, status)
        self.worker.show(future.id, outputs=output_of(1))
        self.assertEqual(1, next(before).rounds)

    def test_a_forked_child_follows_jobs_of_its_own(self):
        (future,) = self.begin()
        client = self.client(progress="progress")

        def run():
            own = client.submit(long(progress=EVERY))
            self.assertEqual(8, next(own.progress(PATIENCE_S)).rounds)
        self.worker.say = lambda job: self.worker.show(job["id"], rounds=8, outputs=output_of(1)) or []
        self.assertEqual(0, run_forked(run))
        self.assertFalse(future.done())

    def test_clients_that_nobody_has_any_more_leave_neither_threads_nor_files(self):
        def held():
            return [len(os.listdir(folder)) for folder in ("/proc/self/task", "/proc/self/fd")]

        (future,) = self.begin()
        self.worker.show(future.id, outputs=output_of(1))
        next(future.progress(PATIENCE_S))
        before, kept = held(), []
        self.worker.say = lambda job: self.worker.show(job["id"], outputs=output_of(1)) or [
            {**echo(job)[0], "rounds": 3, "ended": "until"}]
        for _ in range(3):
            client = gw.Client(self.worker.address, "jobs", "results", progress="progress", programs=[BATCHED])
            kept.append(client.submit(long(progress=EVERY)))
            kept.append(list(kept[-1].progress(PATIENCE_S)))
        del client
        until = time.monotonic() + PATIENCE_S
        while any(now > then for now, then in zip(held(), before)):
            self.assertLess(time.monotonic(), until, (held(), before))
            time.sleep(0.05)


class Strangers(ProgressTest):
    """What anybody may write into the topic of progress."""

    def assert_passed_over(self, future, messages):
        """None is shown, and what the worker shows then is."""
        shown, put = future.progress(PATIENCE_S), Newest.put
        with unittest.mock.patch.object(Newest, "put", autospec=True, side_effect=put) as taken:
            for message in messages:
                if isinstance(message, bytes):
                    self.worker.show_bytes(message)
                else:
                    self.worker.show(future.id, **message)
            self.worker.show(future.id, rounds=2, outputs=output_of(2))
            found = next(shown)
        self.assertEqual((1, 2, 1, [2]), (found.attempt, found.rounds, found.live, found["x"].tolist()))
        taken.assert_called_once()

    def test_progress_that_the_job_cannot_have_shown_is_passed_over(self):
        (future,) = self.begin()
        (good,) = output_of(1)
        numbers = [{key: number} for key in ("attempt", "rounds", "live")
                   for number in (-1, 2**32, 2**64 - 1, 7.0, "7", None, [], True if key != "live" else 2)]
        numbers += [{"attempt": 0}, {"rounds": 0}, {"rounds": 101}]
        others = [{"data": bytes(7)}, {"data": bytes(800)}, {"data": 8}, {"data": None}, {"datatype": "FP64"},
                  {"shape": [2]}, {"shape": []}, {"shape": [1.0]}, {"shape": [None]}, {"name": "y"}, {"name": 7},
                  {"datatype": 7}]
        outputs = [[], [good, good], [None], 7, None, {"x": good}, [{"name": "x", "blob": "sha256:" + "0" * 64}]]
        outputs += [[{**good, **other}] for other in others]
        broken = [{"outputs": [good], **number} for number in numbers] + [{"outputs": one} for one in outputs]
        self.assert_passed_over(future, broken)

    def test_progress_of_another_message_with_the_same_id_is_passed_over(self):
        (future,) = self.begin()
        place = self.worker.sources[future.id]
        others = [{"offset": 10**6}, {"topic": "others"}, {"partition": place["partition"] + 1},
                  {"offset": str(place["offset"])}, {"topic": None}]
        others = [{**place, **other} for other in others] + [{}, None, [], {"topic": "jobs"}]
        self.assert_passed_over(future, [{"source": other, "attempt": 9, "outputs": output_of(1)} for other in others])

    def test_bytes_that_are_no_progress_are_passed_over_and_take_little(self):
        (future,) = self.begin()
        good = {"v": 1, "id": future.id, "attempt": 1, "rounds": 1, "live": 1, "outputs": output_of(1),
                "source": self.worker.sources[future.id]}
        deep = 7
        for _ in range(500):
            deep = [deep]
        messages = [b"", b"\xc1", b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x81\xa2id\xa1\xff",
                    msgpack.packb(good)[:-1], msgpack.packb(good) + b"\0"]
        messages += [msgpack.packb(other) for other in (7, {}, [good], {**good, "id": 7}, {**good, "id": b"\xff"})]
        messages += [msgpack.packb({**good, "more": more}) for more in (
            [None] * 900_000, [[] for _ in range(300_000)], msgpack.Timestamp(1))]
        messages += [msgpack.packb({**good, key: deep}) for key in ("id", "rounds", "outputs", "source")]
        messages += [msgpack.packb({key: value for key, value in good.items() if key != gone})
                     for gone in good if gone != "v"]
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assert_passed_over(future, messages)
        self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)


if __name__ == "__main__":
    unittest.main()
