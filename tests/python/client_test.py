#!/usr/bin/env python3
"""The Python client: what it builds, stores and reads back."""

import array
import asyncio
import base64
import concurrent.futures
import contextlib
import ctypes
import gc
import hashlib
import http.server
import os
import pathlib
import pickle
import re
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import tracemalloc
import unittest
import unittest.mock
import warnings

import check_job
import confluent_kafka
import gpu_worker as gw
import msgpack
import numpy
from by_hand import PATIENCE_S, FakeWorker, await_child, run_forked, start_forked
from gpu_worker import Program
from gpu_worker.futures import Sent
from gpu_worker.link import Link

SCHEMAS = pathlib.Path(check_job.__file__).parent


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
        store.get(store.put(numpy.float32(1))), store.get(store.put(numpy.zeros((0, 3))))
        store.path(store.put(numpy.float32(1))).unlink(), store.path(store.put(numpy.zeros(0))).unlink()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        self.assertEqual([self.folder / hexadecimal[:2] / hexadecimal], files)
        self.assertEqual(hexadecimal, hashlib.sha256(files[0].read_bytes()).hexdigest())

    def test_a_url_that_is_refused_shows_nothing_of_it(self):
        for url in ("ftp://me:hunter2@store", "htps://me:hunter2@store", "https://store/?sig=hunter2", "https://store/#hunter2"):
            with self.assertRaises(ValueError) as refused:
                gw.HttpBlobStore(url)
            self.assertNotIn("hunter2", str(refused.exception))

    def test_whatever_else_lies_at_the_name_of_a_blob_is_replaced_and_nothing_elsewhere_is_touched(self):
        array, elsewhere = numpy.arange(1000, dtype="<i8"), self.folder / "elsewhere"
        store = gw.BlobStore(self.folder / "store")
        name = store.put(array)
        path = store.path(name)
        elsewhere.write_bytes(b"of somebody else")
        whole = array.tobytes()
        for what, put in {"other bytes": lambda: path.write_bytes(whole[::-1]),
                          "a part": lambda: path.write_bytes(whole[:10]),
                          "a link": lambda: path.symlink_to(elsewhere),
                          "a link to nothing": lambda: path.symlink_to(self.folder / "nowhere"),
                          "a pipe": lambda: os.mkfifo(path)}.items():
            with self.subTest(what):
                path.unlink()
                put()
                if path.is_symlink() or path.is_fifo():
                    with self.assertRaises(FileNotFoundError):
                        store.get(name)
                self.assertEqual(store.put(array), name)
                self.assertFalse(path.is_symlink())
                self.assertEqual(store.get(name), whole)
        self.assertEqual(elsewhere.read_bytes(), b"of somebody else")
        self.assertFalse((self.folder / "nowhere").exists())
        self.assertEqual([found.name for found in path.parent.iterdir()], [path.name])

    def test_no_blob_is_stored_or_read_through_a_link_to_a_folder(self):
        array = numpy.arange(1000, dtype="<i8")
        store, elsewhere = gw.BlobStore(self.folder / "store"), self.folder / "elsewhere"
        shelf = store.path(store.put(array)).parent
        shelf.rename(elsewhere)
        shelf.symlink_to(elsewhere)
        next(elsewhere.iterdir()).unlink()
        with self.assertRaises(OSError):
            store.put(array)
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_a_file_with_another_name_is_used_and_keeps_its_time(self):
        array = numpy.arange(1000, dtype="<i8")
        store = gw.BlobStore(self.folder)
        path = store.path(store.put(array))
        os.link(path, self.folder / "another")
        os.utime(path, (1, 1))
        store.put(array)
        self.assertEqual(path.stat().st_mtime, 1)

    def test_a_store_behind_http_is_given_the_credentials_of_its_url_and_shows_them_to_nobody(self):
        stored, heard = {}, set()

        class Store(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(200, b"")

            def do_GET(self):
                self.answer(200 if self.path in stored else 404, stored.get(self.path, b""))

            def answer(self, status, body):
                heard.add(self.headers["Authorization"])
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        store = gw.HttpBlobStore(f"http://reader:hunter%402@127.0.0.1:{server.server_port}/store/")
        name = store.put(numpy.arange(4, dtype="<i8"))
        self.assertEqual([0, 1, 2, 3], numpy.frombuffer(store.get(name), "<i8").tolist())
        hexadecimal = name.removeprefix("sha256:")
        self.assertEqual([f"/store/{hexadecimal[:2]}/{hexadecimal}"], list(stored))
        with self.assertRaises(FileNotFoundError) as caught:
            store.get("sha256:" + "0" * 64)
        self.assertNotIn("hunter", str(caught.exception))
        self.assertEqual({"Basic " + base64.b64encode(b"reader:hunter@2").decode()}, heard)

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
        with self.assertRaisesRegex(gw.JobFailed, "x: bad_launch: too wide\nuse a smaller block"):
            gw.arrays({"id": "x", "status": "error", "error": error, "outputs": []})

    def test_a_result_says_how_a_long_job_ended(self):
        paths = (SCHEMAS / "golden/results").glob("*.msgpack")
        found = {path.stem: gw.ends(msgpack.unpackb(path.read_bytes())) for path in paths}
        ended = {name for name, end in found.items() if end is not None}
        self.assertEqual({name for name in found if name.startswith("long")}, ended)
        self.assertEqual((1234, "until"), found["long"])
        self.assertEqual([70, 5000, 4321], found["long_array"].rounds.tolist())
        self.assertEqual(["until", "repeat", "time"], found["long_array"].ended.tolist())


SAXPY = {
    "name": "saxpy", "description": "", "images": [], "entries": [{
        "name": "saxpy", "block": [256, 1, 1], "shared_bytes": 0, "cooperative": False,
        "args": [
            {"name": "a", "role": "value", "type": "f32", "between": [-8, 8]},
            {"name": "x", "role": "in", "type": "FP32"}, {"name": "y", "role": "inout", "type": "FP32"},
            {"name": "n", "role": "value", "type": "u32"}],
        "bounds": [
            {"what": {"arg": "n"}, "times": 1, "plus": 0, "at_most": {"arg": "x"}},
            {"what": {"arg": "n"}, "times": 1, "plus": 0, "at_most": {"arg": "y"}},
            {"what": {"launch": "blocks"}, "times": 2, "plus": 1, "at_most": {"arg": "x"}}]}]}
X, Y = numpy.arange(4, dtype="<f4"), numpy.ones(4, "<f4")


class Golden(unittest.TestCase):
    def test_the_encoder_spells_every_golden_job_as_a_worker_takes_it(self):
        paths = sorted((SCHEMAS / "golden/valid").glob("*.msgpack"))
        self.assertGreater(len(paths), 40)
        for path in paths:
            with self.subTest(path.name):
                job = msgpack.unpackb(path.read_bytes())
                encoded = gw.encode(job)
                self.assertEqual(("ok", ""), check_job.verdict(encoded))
                self.assertEqual(repr(job), repr(msgpack.unpackb(encoded)))

    def test_golden_results_become_arrays_or_failures(self):
        for path in sorted((SCHEMAS / "golden/results").glob("*.msgpack")):
            result = msgpack.unpackb(path.read_bytes())
            with self.subTest(path.name):
                if result["status"] != "ok":
                    with self.assertRaises(gw.JobFailed) as caught:
                        gw.arrays(result)
                    self.assertEqual(result["error"], {key: getattr(caught.exception, key) for key in result["error"]})
                    self.assertEqual(result.get("failed", []), caught.exception.failed)
                    self.assertEqual([output["name"] for output in result["outputs"]], list(caught.exception.arrays()))
                else:
                    for output in result["outputs"]:
                        if "data" in output:
                            array = gw.arrays({**result, "outputs": [output]})[output["name"]]
                            self.assertEqual(output["data"], array.tobytes())


def failed(code):
    return {"status": "error", "error": {"code": code, "message": "no", "fix": "do", "retry": "sender", "attempts": 3}}


def echo(job):
    """Each output that was uploaded comes back as it is."""
    outputs = [output["buffer"] for output in job.get("outputs", [])]  # a cancel has none
    return [{"outputs": [described(job["buffers"][name], name) for name in outputs]}]


def described(buffer, name):
    return {"name": name, **{key: buffer[key] for key in ("datatype", "shape", "data", "blob") if key in buffer}}


def numbered(number):
    return gw.job("job", {"x": numpy.array([number])}, [gw.step("p", [], grid=[1])], ["x"])


def long(most=100, **keys):
    """A job that is done when its buffer says so."""
    keys = {"repeat": most, "until": "done", **keys}
    buffers = {"x": numpy.array([2]), "done": gw.zeros((), "<u4")}
    return gw.job("fit", buffers, [gw.step("p", ["x", "done"], grid=[1])], ["x"],
                  **{key: value for key, value in keys.items() if value is not None})


def long_array(count=3, **keys):
    """An array of it, which gives nothing back but its ends."""
    buffers = {"done": {**gw.zeros((), "<u4"), "each": True}}
    return {**long(**keys), "count": count, "buffers": buffers, "outputs": []}


class ClientTest(unittest.TestCase):
    """What a worker would say is said by hand."""

    def start(self, say=echo, **options):
        self.worker = FakeWorker(self, say)
        return self.client(**options)

    def client(self, **options):
        client = gw.Client(self.worker.address, "jobs", "results", **{"programs": [SAXPY], **options})
        self.addCleanup(client.close, wait=False)
        return client


class Clients(ClientTest):
    def test_each_future_gets_its_own_result_whoever_else_is_there(self):
        one = self.start(lambda job: echo(job) * 2)  # everything is answered twice
        clients = [one, self.client()]
        answers = {}

        def send(client, first):
            futures = {number: client.submit(numbered(number)) for number in range(first, first + 200)}
            answers.update({number: future.result(PATIENCE_S)["x"][0] for number, future in futures.items()})

        threads = [threading.Thread(target=send, args=(client, 1000 * n)) for n, client in enumerate(clients * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(800, len(answers))
        self.assertTrue(all(number == answer for number, answer in answers.items()))

    def test_a_name_stands_beside_the_id_that_is_drawn(self):
        client = self.start(lambda job: [failed("bad_launch")])
        future = client.submit({**numbered(1), "id": "sweep \u00e4" * 100})
        with self.assertRaises(gw.JobFailed) as caught:
            future.result(PATIENCE_S)
        error = caught.exception
        self.assertEqual((error.code, error.message, error.fix, error.retry, error.attempts),
                         ("bad_launch", "no", "do", "sender", 3))
        self.assertEqual(error.name, future.name)
        self.assertNotEqual(future.id, future.name)
        self.assertLessEqual(len(future.id.encode()), 256)
        self.assertEqual(str(error), str(pickle.loads(pickle.dumps(error))))

    def test_jobs_with_an_empty_key_share_a_partition_unless_the_user_chose_a_partitioner(self):
        places = {}

        def say(job):
            places.setdefault(job["buffers"]["x"]["data"], set()).add((self.worker.partition, self.worker.key))
            return echo(job)
        client = self.start(say)
        free = self.client(producer={"partitioner": "random", "sticky.partitioning.linger.ms": 0})
        for number, sender, key in ((1, client, ""), (2, client, b""), (3, client, None), (4, free, "")):
            for future in [sender.submit(numbered(number), key) for _ in range(40)]:
                future.result(PATIENCE_S)
        one, two, none, scattered = (places[gw.upload(numpy.array([number]))["data"]] for number in (1, 2, 3, 4))
        self.assertEqual([(0, b"")], list(one))
        self.assertEqual(one, two)
        self.assertEqual({None}, {key for _, key in none})
        self.assertGreater(len(scattered), 1)

    def late_client(self, offset):
        """One whose place in each partition of results is there; it begins to read when the event is set."""
        gate, read = threading.Event(), Link.read
        for name, mock in (("_wait_for_ends", lambda link: dict.fromkeys(range(4), offset)),
                           ("read", lambda link: read(link) if gate.wait(0.1) else [])):
            patch = unittest.mock.patch.object(Link, name, mock)
            patch.start()
            self.addCleanup(patch.stop)
        return self.client(), gate

    def test_results_that_are_gone_before_they_are_read_fail_what_they_may_have_answered_and_nothing_later(self):
        unanswered = numpy.array([1]).tobytes()
        self.worker = FakeWorker(self, lambda job: echo(job) if job["buffers"]["x"]["data"] != unanswered else [])
        for _ in range(7):  # the broker keeps 5 MiB of them
            self.worker.broker.produce("results", bytes(900_000), partition=0)
        self.worker.broker.flush()
        client, gate = self.late_client(0)
        future = client.submit(numbered(1))
        with self.assertLogs("gpu_worker", "WARNING") as said:
            gate.set()
            with self.assertRaisesRegex(gw.ResultsLost, "of results were deleted before they were read.*in_flight_bytes"):
                future.result(PATIENCE_S)
        self.assertIn("of results were deleted before they were read", "".join(said.output))
        self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))

    def test_results_are_read_from_their_start_where_the_log_is_shorter_than_it_was(self):
        self.worker = FakeWorker(self, echo)
        client, gate = self.late_client(1_000_000)
        gate.set()
        self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))

    def test_who_stops_iterating_loses_no_result(self):
        client = self.start()
        futures = [client.submit(numbered(number)) for number in range(20)]
        for future in gw.as_completed(futures, PATIENCE_S):
            break
        self.assertEqual(list(range(20)), [int(future.result(PATIENCE_S)["x"][0]) for future in futures])
        self.assertCountEqual(futures, gw.as_completed((future for future in futures), PATIENCE_S))

    def test_a_coroutine_awaits_its_jobs(self):
        client = self.start()

        async def run():
            futures = [client.submit(numbered(number)) for number in range(10)]
            return [int((await asyncio.wrap_future(future))["x"][0]) for future in futures]

        self.assertEqual(list(range(10)), asyncio.run(asyncio.wait_for(run(), PATIENCE_S)))

    def test_a_sender_waits_while_too_many_jobs_are_unanswered(self):
        gate = threading.Event()
        client = self.start(lambda job: gate.wait(PATIENCE_S) and echo(job), in_flight=3)
        sent = []
        sender = threading.Thread(target=lambda: sent.extend(client.submit(numbered(n)) for n in range(10)))
        sender.start()
        while not sent or len(client._unanswered) < 3:
            sender.join(0.01)
        sender.join(0.2)
        self.assertEqual(3, len(client._unanswered))
        self.assertTrue(sender.is_alive())
        gate.set()
        sender.join()
        self.assertEqual(list(range(10)), [int(future.result(PATIENCE_S)["x"][0]) for future in sent])

    def test_a_callback_may_send_more_than_there_is_room_for(self):
        client = self.start(in_flight=1)
        whole = concurrent.futures.Future()
        client.submit(numbered(1)).add_done_callback(
            lambda _: whole.set_result([client.submit(numbered(number)) for number in (2, 3)]))
        self.assertEqual([2, 3], [int(future.result(PATIENCE_S)["x"][0]) for future in whole.result(PATIENCE_S)])

    def connect(self, client):
        """A fork while a thread looks up an address leaves the C library's resolver locked in the child."""
        self.assertEqual(0, int(client.submit(numbered(0)).result(PATIENCE_S)["x"][0]))

    def start_gated(self, say=echo, **options):
        """One that is connected, and an event without which nobody answers it."""
        gate = threading.Event()
        gate.set()
        client = self.start(lambda job: gate.wait(PATIENCE_S) and say(job), **options)
        self.addCleanup(gate.set)
        self.connect(client)
        gate.clear()
        return client, gate

    def test_a_forked_child_has_its_own_jobs_and_leaves_its_parents_alone(self):
        client, gate = self.start_gated()
        future = client.submit(numbered(1))

        def run():
            with self.assertRaisesRegex(RuntimeError, "before a fork"):
                future.result(PATIENCE_S)
            self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))
            client.close()
        child = start_forked(run)
        gate.set()
        self.assertEqual(0, await_child(child))
        self.assertEqual(1, int(future.result(PATIENCE_S)["x"][0]))
        self.assertEqual(3, int(client.submit(numbered(3)).result(PATIENCE_S)["x"][0]))

    def test_whoever_waits_in_a_forked_child_for_jobs_of_its_parent_is_told(self):
        client, gate = self.start_gated(lambda job: echo_array(job) if "count" in job else echo(job), control="jobs",
                                        programs=[BATCHED])
        future, resident = client.submit(numbered(1)), client.resident("r", [1], key="k")
        whole = client.program("saxpy").map(a=[1, 2], x=gw.upload(X), y=gw.rows(numpy.ones((2, 4), "<f4")))
        client.submit(gw.job("j", {"r": resident}, [gw.step("p", [], grid=[1])], []))

        async def run():
            return await asyncio.wrap_future(future)
        for what, wait in {
            "for a job": future.result, "with asyncio": lambda: asyncio.run(run()), "for a map": whole.result,
            "for a row": lambda: whole.futures[0].result(),
            "for any": lambda: next(concurrent.futures.as_completed([future, whole])).result(),
            "for any, with us": lambda: next(gw.as_completed([future])).result(),
            "for all": lambda: concurrent.futures.wait([future, whole])[0].pop().result(),
            "for a resident's jobs, to seed it": lambda: resident.seed(numpy.ones(1, "<f4")),
        }.items():
            def run_child():
                with self.assertRaisesRegex(RuntimeError, "in the child"):
                    wait()
            with self.subTest(what):
                self.assertEqual(0, run_forked(run_child))
        for what, leave in {"its block of a resident": lambda: resident.__exit__(None), "its client": client.close}.items():
            with self.subTest(what):
                self.assertEqual(0, run_forked(leave))
        self.assertEqual(0, run_forked(lambda: self.assertFalse(future.cancel() or whole.cancel())))
        gate.set()
        self.assertEqual(1, int(future.result(PATIENCE_S)["x"][0]))
        self.assertEqual((2, 4), whole.result(PATIENCE_S)["y"].shape)
        self.assertEqual([], [job for job in self.worker.jobs if "action" in job])

    def test_a_fork_while_another_thread_has_the_lock_of_a_future_hangs_no_child(self):
        client = self.start()
        future = client.submit(numbered(1))
        future.result(PATIENCE_S)
        whole = client.gather([Sent(future)])
        whole.result(PATIENCE_S)
        has, over = threading.Event(), threading.Event()

        def hold():
            with future._condition, whole._condition, whole._rows_lock:
                has.set()
                over.wait(PATIENCE_S)
        holder = threading.Thread(target=hold)
        holder.start()
        has.wait(PATIENCE_S)
        status = run_forked(lambda: (future.result(), whole.result(), whole.futures))
        over.set()
        holder.join()
        self.assertEqual(0, status)

    def test_a_child_that_a_callback_forks_ends_and_leaves_the_answers_to_its_parent(self):
        client, gate = self.start_gated()
        children = []
        future = client.submit(numbered(1))
        future.add_done_callback(lambda _: children.append(os.fork()))
        gate.set()
        self.assertEqual(1, int(future.result(PATIENCE_S)["x"][0]))
        self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))
        self.assertEqual(0, await_child(children.pop()))
        self.assertEqual(3, int(client.submit(numbered(3)).result(PATIENCE_S)["x"][0]))

    def test_a_forked_child_does_not_stumble_over_clients_that_are_closed(self):
        client = self.start()
        closed = [self.client() for _ in range(8)]
        for other in closed:
            other.close()
        self.connect(client)

        def run():
            self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))
            client.close()
        self.assertEqual(0, run_forked(run))

    def test_results_that_were_answered_are_stacked_after_the_client_was_closed(self):
        client = self.start()
        sent = [Sent(client.submit(numbered(number))) for number in range(3)]
        client.close()
        self.assertEqual([0, 1, 2], client.gather(sent).result(PATIENCE_S)["x"].ravel().tolist())

    def test_what_a_worker_misses_is_brought_once_to_each_partition(self):
        had = set()

        def say(job):
            buffer = job["buffers"]["x"]
            if "data" in buffer:
                had.add(self.worker.partition)
            return [failed("static_missing")] if self.worker.partition not in had else [{}]

        client = self.start(say)
        table = client.static(X)
        job = gw.job("job", {"x": table}, [gw.step("p", [], grid=[1])], [])
        client.submit(job).result(PATIENCE_S)
        for n in range(50):  # keys go to all partitions; one by one, since answers of several come in any order
            client.submit(job, key=f"key {n}").result(PATIENCE_S)
        bringing = sum("data" in job["buffers"]["x"] for job in self.worker.jobs)
        self.assertEqual(len(had), bringing)
        self.assertGreater(len(had), 1)

    def test_a_static_that_nobody_ever_has_fails_in_the_end(self):
        client = self.start(lambda job: [failed("static_missing")])
        job = gw.job("job", {"x": client.static(X)}, [gw.step("p", [], grid=[1])], [])
        with self.assertRaisesRegex(gw.JobFailed, "static_missing"):
            client.submit(job).result(PATIENCE_S)

    def test_a_resident_that_is_gone_comes_back_and_its_jobs_keep_their_order(self):
        """A worker of one number, which loses it twice: before anything changed it, and after it was read whole."""
        held, runs = {}, []

        def say(job):
            buffer, number = job["buffers"]["r"], job["steps"][0]["args"][0]["u32"]
            if "init" in buffer and buffer["resident"] not in held:
                held[buffer["resident"]] = [0, int(numpy.frombuffer(buffer["init"]["data"], "<i4")[0])]
            if number in losses:
                losses.remove(number)
                held.clear()
            if buffer["resident"] not in held:
                return [failed("resident_gone")]
            runs.append(number)
            held[buffer["resident"]][0] += 1
            held[buffer["resident"]][1] += number
            generation, value = held[buffer["resident"]]
            output = {"name": "r", "datatype": "INT32", "shape": [1], "data": numpy.array([value], "<i4").tobytes()}
            return [{"outputs": [output] if job["outputs"] else [], "residents": {buffer["resident"]: generation}}]

        losses = [0, 10]
        client = self.start(say)
        with client.resident("sum", [1], "<i4", key="k") as resident:
            def add(number, outputs=("r",)):
                return client.submit(gw.job("add", {"r": resident}, [gw.step("p", [gw.u32(number)], grid=[1])], outputs))

            futures = [add(number) for number in range(20)]
            totals = [int(future.result(PATIENCE_S)["r"][0]) for future in futures]
            self.assertEqual([sum(range(number + 1)) for number in range(20)], totals)
            self.assertEqual(list(range(20)), runs)

            add(100, ()).result(PATIENCE_S)  # nobody but the worker knows what it is now
            losses.append(101)
            with self.assertRaisesRegex(gw.JobFailed, "resident_gone"):
                add(101).result(PATIENCE_S)
            resident.seed(numpy.array([7], "<i4"))
            self.assertEqual(8, int(add(1).result(PATIENCE_S)["r"][0]))

    def test_a_job_that_cannot_be_sent_again_fails_and_those_behind_it_go_on(self):
        """The resident that has to be made again and the job's own array are too much for one message."""
        large = numpy.zeros(600_000, "u1")
        gate, is_lost = threading.Event(), [False, True, True]

        def say(job):
            if is_lost and is_lost.pop(0):
                gate.wait(PATIENCE_S)
                return [failed("resident_gone")]
            output = {"name": "r", "datatype": "UINT8", "shape": [600_000], "data": large.tobytes()}
            return [{"outputs": [output] if job["outputs"] else [], "residents": {job["buffers"]["r"]["resident"]: 1}}]

        client = self.start(say)
        with client.resident("r", init=large, key="k") as resident:
            def add(outputs, **more):
                return client.submit(gw.job("add", {"r": resident, **more}, [gw.step("p", [], grid=[1])], outputs))

            add(["r"]).result(PATIENCE_S)
            first, second = add([], x=large), add([])
            gate.set()
            with self.assertRaisesRegex(ConnectionError, "was not sent"):
                first.result(PATIENCE_S)
            second.result(PATIENCE_S)

    def test_a_resident_of_each_instance_is_sent_as_its_part_and_begins_with_all(self):
        client = self.start(echo)
        job = gw.job("job", {}, [gw.step("p", [], grid=[1])], [], count=2)
        with client.resident("r", key="k", init=numpy.arange(8, dtype="<f4").reshape(2, 4), each=True) as resident:
            client.submit({**job, "buffers": {"r": resident}}).result(PATIENCE_S)
        (sent,) = [job["buffers"]["r"] for job in self.worker.jobs]
        self.assertEqual({"bytes": 16, "datatype": "FP32", "shape": [4], "each": True, "resident": sent["resident"],
                          "init": {"data": numpy.arange(8, dtype="<f4").tobytes()}}, sent)

    def test_a_cancelled_future_is_cancelled_and_the_workers_hear_of_it(self):
        gate = threading.Event()
        client = self.start(lambda job: gate.wait(PATIENCE_S) and echo(job), control="jobs")  # which the fake worker reads
        client.submit(numbered(1))
        future = client.submit(numbered(2))
        self.assertTrue(future.cancel())
        gate.set()
        self.assertTrue(future.cancelled())
        client.close()
        self.assertIn({"v": 1, "id": future.id, "action": "cancel"}, self.worker.jobs)

    def answer_long(self, *ends, job=None, **options):
        """A future of a long job for each of these ends, once it is answered."""
        left, futures = list(ends), []

        def say(job):
            (rounds, ended), (result,) = left.pop(0), echo(job)
            return [{**result, "rounds": rounds, "ended": ended}]

        client = self.start(say, **options)
        for _ in ends:  # one after the other: two of them may come to the worker in another order
            futures.append(client.submit(job or long()))
            concurrent.futures.wait(futures, PATIENCE_S)
        return futures

    def test_a_long_job_is_answered_with_its_rounds_and_what_ended_it(self):
        ends = [(7, "until"), (99, "time"), (1, "stop")]
        futures = self.answer_long(*ends)
        self.assertEqual([2, 2, 2], [int(future.result()["x"][0]) for future in futures])
        self.assertEqual(ends, [(future.rounds, future.ended) for future in futures])
        self.assertEqual({"buffer": "done"}, self.worker.jobs[0]["until"])
        (future,) = self.answer_long(((5).to_bytes(4, "little") * 3, bytes([1, 3, 4])), job=long_array())
        self.assertEqual({}, future.result())
        self.assertEqual([5, 5, 5], future.rounds.tolist())
        self.assertEqual(["until", "time", "stop"], future.ended.tolist())

    def test_a_job_that_is_not_long_has_no_rounds(self):
        future = self.start().submit(numbered(1))
        self.assertEqual((None, None), (future.rounds, future.ended))
        future.result(PATIENCE_S)
        self.assertEqual((None, None), (future.rounds, future.ended))
        (future,) = self.answer_long((100, "repeat"), job=long(until=None, time_ms=1))
        self.assertEqual((100, "repeat"), (future.rounds, future.ended))

    def test_a_long_job_that_was_not_done_has_its_outputs_and_a_warning(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            (future,) = self.answer_long((100, "repeat"))
            self.answer_long((99, "time"))
            self.answer_long((100, "repeat"), job=long(until=None, time_ms=1))
            each = b"".join(number.to_bytes(4, "little") for number in (100, 30, 100))
            self.answer_long((each, bytes([2, 1, 2])), job=long_array())
        self.assertEqual(2, int(future.result()["x"][0]))
        self.assertEqual([gw.NotConverged] * 2, [one.category for one in said])
        self.assertRegex(str(said[0].message), "fit: it was not done after 100 rounds")
        self.assertRegex(str(said[1].message), "fit: 2 of 3 instances were not done after 100 rounds")

    def test_a_long_job_that_was_not_done_fails_where_that_warning_is_an_error(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", gw.NotConverged)
            (future,) = self.answer_long((100, "repeat"))
        self.assertIsInstance(future.exception(), gw.NotConverged)
        self.assertEqual("repeat", future.ended)

    def test_a_long_job_is_stopped_and_answered_with_what_it_has(self):
        gate = threading.Event()

        def say(job):
            gate.wait(PATIENCE_S)
            return [] if "action" in job else [{**echo(job)[0], "rounds": 3, "ended": "stop"}]

        client = self.start(say, control="jobs")  # which the fake worker reads
        future = client.submit(long())
        self.assertTrue(future.stop())
        self.assertFalse(future.done())
        gate.set()
        self.assertEqual(2, int(future.result(PATIENCE_S)["x"][0]))
        self.assertEqual("stop", future.ended)
        self.assertFalse(future.stop())
        client.close()
        told = [job for job in self.worker.jobs if "action" in job]
        self.assertEqual([{"v": 1, "id": future.id, "action": "stop"}], told)

    def test_only_who_has_a_control_topic_stops_jobs(self):
        client = self.start(lambda job: [])
        future = client.submit(long())
        with self.assertRaisesRegex(ValueError, "`control` cannot stop"):
            future.stop()
        with self.assertRaisesRegex(ValueError, "`control` cannot cancel"):
            client.cancel([future.id])
        self.assertTrue(future.cancel())
        self.assertFalse(future.stop())

    def test_what_is_too_large_for_a_message_says_what_to_do(self):
        client = self.start()
        with self.assertRaisesRegex(ConnectionError, "blob store"):
            client.submit(gw.job("job", {"x": numpy.zeros(2_000_000)}, [], []))
        self.assertEqual(1, int(client.submit(numbered(1)).result(PATIENCE_S)["x"][0]))

    def test_large_arrays_go_through_the_blob_store(self):
        with tempfile.TemporaryDirectory() as folder:
            client = self.start(blobs=folder)
            large = numpy.arange(100_000)
            answer = client.submit(gw.job("job", {"x": large}, [], ["x"])).result(PATIENCE_S)
            numpy.testing.assert_array_equal(large, answer["x"])
            self.assertIn("blob", self.worker.jobs[0]["buffers"]["x"])

    def test_what_is_no_job_is_named(self):
        client, good = self.start(), numbered(1)
        for error, words, job in [
            (ValueError, "no 'buffers'", {"id": "q"}), (ValueError, "no 'outputs'", {**good, "outputs": None, "x": 1}),
            (TypeError, "'buffers' of the job is 7", {**good, "buffers": 7}),
            (TypeError, "an output of the job is 'x'", {**good, "outputs": ["x"]}),
            (TypeError, "buffer 'x' has elements of type object", {**good, "buffers": {"x": [None]}}),
            (TypeError, "buffer 'x' has elements of type .*128", {**good, "buffers": {"x": numpy.ones(1, "longdouble")}}),
        ]:
            job = {key: value for key, value in job.items() if value is not None}
            with self.subTest(words), self.assertRaisesRegex(error, words):
                client.submit(job)
        self.assertEqual(1, int(client.submit(good).result(PATIENCE_S)["x"][0]))

    def ways_to_use(self):
        """What each does with a client, and returns to be kept."""
        def submit(client, number=1, **buffers):
            job = numbered(number)
            future = client.submit({**job, "buffers": {**job["buffers"], **buffers}})
            future.exception(PATIENCE_S)
            return future

        def map_rows(client):
            whole = client.program("saxpy").map(a=[1, 2, 3], x=gw.upload(X), y=gw.rows(numpy.ones((3, 4), "<f4")))
            whole.result(PATIENCE_S)
            return whole, whole.futures

        def use_resident(client):
            with client.resident("r", [1], key="k") as resident:
                submit(client, r=resident)

        def fail(client):
            with unittest.mock.patch.object(client, "check_worker", side_effect=ConnectionError("it ended")):
                while client._failure is None:
                    time.sleep(0.01)

        return {"nothing is kept": lambda client: submit(client) and None, "its answer is kept": submit, "rows are kept": map_rows,
                "a failed job is kept": lambda client: submit(client, -1),
                "an answer that does not fit is kept": lambda client: submit(client, -2),
                "it had residents": use_resident, "it failed": fail, "nobody waited": lambda client: client.submit(numbered(1))}

    def test_clients_that_nobody_has_any_more_leave_neither_threads_nor_files(self):
        """As a cell of a notebook does that is run again: nothing waits for garbage to be collected."""
        def say(job):
            numbers = numpy.frombuffer(job["buffers"]["x"]["data"][:8], "<i8")[0]
            return {-1: [failed("bad_launch")], -2: [{"outputs": []}]}.get(numbers) or (echo_array if "count" in job else echo)(job)

        def held():
            return [len(os.listdir(folder)) for folder in ("/proc/self/task", "/proc/self/fd")]

        self.connect(self.start(say))
        self.addCleanup(gc.enable)
        for what, use in self.ways_to_use().items():
            with self.subTest(what):
                gc.collect()
                gc.disable()
                before, kept = held(), []
                for _ in range(3):
                    client = gw.Client(self.worker.address, "jobs", "results", programs=[BATCHED])
                    kept.append(use(client))
                del client
                until = time.monotonic() + PATIENCE_S
                while any(now > then for now, then in zip(held(), before)):
                    self.assertLess(time.monotonic(), until, (held(), before))
                    time.sleep(0.05)
                gc.enable()

    def test_an_answer_comes_though_nobody_has_its_client(self):
        gate = threading.Event()
        client = self.start(lambda job: gate.wait(PATIENCE_S) and echo(job))
        future = gw.Client(self.worker.address, "jobs", "results").submit(numbered(7))
        gc.collect()
        gate.set()
        self.assertEqual(7, int(future.result(PATIENCE_S)["x"][0]))
        self.assertEqual(8, int(client.submit(numbered(8)).result(PATIENCE_S)["x"][0]))

    def test_asking_in_vain_for_the_id_of_the_topic_of_results_leaves_neither_threads_nor_files(self):
        self.worker = FakeWorker(self, echo)
        link = Link(self.worker.address, "results", {}, {}, {})
        self.addCleanup(link.close)
        link.is_embedded = False  # so that it asks; this broker never answers
        folders = ("/proc/self/task", "/proc/self/fd")
        before = [len(os.listdir(folder)) for folder in folders]
        self.addCleanup(gc.enable)
        gc.disable()  # what is in a cycle may stay for long
        with unittest.mock.patch("gpu_worker.link.REQUEST_TIMEOUT_S", 0.05):
            self.assertEqual({"the last"}, {link._ask_id().answer("the last") for _ in range(10)})
        until = time.monotonic() + PATIENCE_S
        # The link's own connections may come late. If each question left one behind, it would be 10.
        while any(len(os.listdir(folder)) >= then + 10 for folder, then in zip(folders, before)):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_answers_come_while_the_brokers_do_not_say_the_id_of_the_topic_and_the_question_is_repeated_in_time(self):
        client, asked = self.start(), []
        question = unittest.mock.Mock(is_over=lambda: False)
        with unittest.mock.patch.object(Link, "_ask_id", lambda link: asked.append(link) or question), \
                unittest.mock.patch.object(Link, "_refresh", autospec=True) as refresh:
            client._link._refresh_at = 0
            for number in range(20):
                self.assertEqual(number, int(client.submit(numbered(number)).result(PATIENCE_S)["x"][0]))
            self.assertEqual([client._link], asked)
            question.answer.assert_not_called()
            question.is_over, question.answer = lambda: True, lambda last: "another"
            until = time.monotonic() + PATIENCE_S
            while not refresh.called:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            self.assertEqual(21, int(client.submit(numbered(21)).result(PATIENCE_S)["x"][0]))
            refresh.assert_called_once_with(client._link, "another")
            self.assertEqual(1, len(asked))

    def test_a_look_at_the_topic_that_the_brokers_do_not_answer_is_repeated_after_a_while(self):
        self.worker = FakeWorker(self, echo)
        client, gate = self.late_client(1_000_000)  # each partition lacks what would come next
        looked = []

        def fail(link):
            looked.append(time.monotonic())
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT))
        with unittest.mock.patch.object(Link, "_partitions", fail), unittest.mock.patch("gpu_worker.link.RETRY_S", 0.5):
            gate.set()
            future = client.submit(numbered(2))
            until = time.monotonic() + PATIENCE_S
            while len(client._link._astray) < 4 or len(looked) < 7:  # each that is found to lack something calls for a look
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
        self.assertGreater(looked[-1] - looked[-2], 0.45)
        self.assertEqual(2, int(future.result(PATIENCE_S)["x"][0]))

    def test_what_the_library_below_says_goes_to_the_logger(self):
        script = ("import logging, sys, time, confluent_kafka, gpu_worker\n"
                  "said = []\n"
                  "class Handler(logging.Handler):\n"
                  "    def emit(self, record): said.append(record)\n"
                  "broker = confluent_kafka.Producer({'bootstrap.servers': 'none', 'test.mock.num.brokers': 1, 'log_level': 0})\n"
                  "(one,) = broker.list_topics(timeout=240).brokers.values()\n"
                  "client = gpu_worker.Client(f'{one.host}:{one.port}')\n"
                  "if sys.argv[1:]: logging.getLogger('gpu_worker').addHandler(Handler())\n"
                  "del broker\n"
                  "until = time.monotonic() + (240 if sys.argv[1:] else 2)\n"
                  "while not said and time.monotonic() < until: time.sleep(0.05)\n"
                  "print(len(said) > 0)\n"
                  "client.close(wait=False)\n")
        for arguments, heard in ([], "False"), (["listen"], "True"):
            ended = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual((heard, ""), (ended.stdout.strip(), ended.stderr))

    def test_closing_without_waiting_fails_what_is_unanswered(self):
        client = self.start(lambda job: [])
        future = client.submit(numbered(1))
        client.close(wait=False)
        with self.assertRaisesRegex(ConnectionError, "closed"):
            future.result(PATIENCE_S)
        with self.assertRaisesRegex(RuntimeError, "closed"):
            client.submit(numbered(1))

    def test_brokers_that_are_not_there_are_named(self):
        with unittest.mock.patch("gpu_worker.link.START_TIMEOUT_S", 0.5):
            with self.assertRaisesRegex(ConnectionError, "cannot be reached.*127.0.0.1:1/"):
                gw.Client("127.0.0.1:1")

    def test_brokers_that_are_not_there_are_said_once(self):
        ended = subprocess.run([sys.executable, "-c", "import gpu_worker, gpu_worker.link\n"
                                "gpu_worker.link.START_TIMEOUT_S = 1\ngpu_worker.Client('127.0.0.1:1')"],
                               capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(1, len(re.findall("refused", ended.stderr)), ended.stderr)


def produce_with_headers(address, topic, names):
    """A message with headers whose names are any bytes: confluent_kafka sends none, but the library under it does."""
    (path,) = set(re.findall(r"/\S*/librdkafka\S*", pathlib.Path("/proc/self/maps").read_text()))
    kafka, error, no = ctypes.CDLL(path), ctypes.create_string_buffer(512), ctypes.c_size_t
    kafka.rd_kafka_conf_new.restype = kafka.rd_kafka_new.restype = kafka.rd_kafka_headers_new.restype = ctypes.c_void_p
    conf = ctypes.c_void_p(kafka.rd_kafka_conf_new())
    kafka.rd_kafka_conf_set(conf, b"bootstrap.servers", address.encode(), error, no(512))
    client = ctypes.c_void_p(kafka.rd_kafka_new(0, conf, error, no(512)))
    headers = ctypes.c_void_p(kafka.rd_kafka_headers_new(no(1)))
    for name in names:
        kafka.rd_kafka_header_add(headers, name, no(len(name)), b"1", no(1))
    parts = {1: [topic.encode()], 3: [0], 4: [b"value", no(5)], 10: [headers]}  # RD_KAFKA_VTYPE_TOPIC, PARTITION, VALUE, HEADERS
    kafka.rd_kafka_producev(client, *(part for kind, values in parts.items() for part in [kind, *values]), 0)
    kafka.rd_kafka_flush(client, PATIENCE_S * 1000)
    kafka.rd_kafka_destroy(client)


class Strangers(ClientTest):
    """What anybody may write into the topic of results, or answer in the place of the blob store."""

    def failures(self, answers, job, **options):
        """What becomes of a job for each of these answers. One that is answered well then finds the client well."""
        left = list(answers)
        client = self.start(lambda job: [left.pop(0)] if left else echo(job), **options)
        failures = [client.submit(job).exception(PATIENCE_S) for _ in answers]
        self.assertEqual(2, int(client.submit(numbered(2)).result(PATIENCE_S)["x"][0]))
        return failures

    def test_an_answer_to_another_message_is_not_taken_whatever_its_id(self):
        def say(job):
            (result,) = echo(job)
            (output,) = result["outputs"]
            forged = {"outputs": [{**output, "data": bytes(8)}]}
            place = self.worker.partition
            return [{**forged, "source": {"topic": topic, "partition": partition, "offset": offset}}
                    for topic, partition, offset in [("jobs", place, 10**6), ("jobs", place + 1, 0), ("others", place, 0)]
                    ] + [result]

        client = self.start(say)
        futures = [client.submit(numbered(number)) for number in range(1, 50)]
        self.assertEqual(list(range(1, 50)), [int(future.result(PATIENCE_S)["x"][0]) for future in futures])

    def test_nobody_can_tell_the_next_id_from_those_before(self):
        client = self.start()
        drawn = [client.submit(numbered(number)).id.removeprefix("job:") for number in range(50)]
        for place in range(0, len(drawn[0]), 8):
            self.assertEqual(50, len({id[place:place + 8] for id in drawn}), drawn[:3])

    def test_a_job_whose_place_the_brokers_do_not_say_fails(self):
        client = self.start(producer={"acks": 0, "enable.idempotence": False})
        with self.assertRaisesRegex(ConnectionError, "acks"):
            client.submit(numbered(1)).result(PATIENCE_S)

    def test_a_header_whose_name_is_no_text_ends_nothing(self):
        client = self.start()
        for number in range(50):  # from then on the interpreter calls what it has called often in its own, quicker way
            client.submit(numbered(number)).result(PATIENCE_S)
        # So many make a collection of garbage due when the last one is met, and that forgot the error about its name.
        for names in ([b"\xff\xfe"], [b"name"] * 3000 + [b"\xff\xfe"], [b"\xff\xfe"] * 2 + [b"name"] * 3000):
            produce_with_headers(self.worker.address, "results", names)
            self.assertEqual(1, int(client.submit(numbered(1)).result(PATIENCE_S)["x"][0]))

    def test_an_answer_that_breaks_the_format_fails_its_own_job_alone(self):
        error = {"code": "io", "message": "no"}
        broken = [{"outputs": None}, {"status": None, "outputs": [None]}, {"status": "error"}, {"error": 7},
                  {"status": "error", "error": {**error, "code": 7}}, {"status": "error", "error": {**error, "attempts": "x"}},
                  {"status": "partial", "error": error, "failed": [{"instance": 0}]}, {"residents": {"r": "x"}},
                  {"telemetry": 7}, {"outputs": [{"name": "x", "blob": "sha256:" + "../" * 20 + "etc/passwd"}]}]
        with tempfile.TemporaryDirectory() as folder:
            for failure in self.failures(broken, numbered(1), blobs=folder):
                self.assertRegex(str(failure), "no result")

    def test_an_answer_that_breaks_the_format_ends_a_job_of_a_resident(self):
        client = self.start(lambda job: [{"status": None}])
        with client.resident("r", [1], key="k") as resident:
            job = gw.job("job", {"r": resident}, [gw.step("p", [], grid=[1])], [])
            self.assertIsNotNone(client.submit(job).exception(PATIENCE_S))
            resident.seed(numpy.ones(1, "<f4"))  # none of its jobs is under way

    def test_outputs_that_the_job_did_not_ask_for_fail_it_alone(self):
        good = {"name": "x", "datatype": "INT64", "shape": [1], "data": bytes(8)}
        others = [{"data": bytes(7)}, {"data": bytes(800)}, {"datatype": "FP64"}, {"shape": [2]}, {"shape": []}, {"name": "y"}]
        answers = [{"outputs": [{**good, **other}]} for other in others] + [{"outputs": []}, {"outputs": [good, good]}]
        for failure in self.failures(answers, numbered(1)):
            self.assertRegex(str(failure), "does not fit the job")

    def test_ends_that_the_job_cannot_have_fail_it_alone(self):
        good = {"outputs": [{"name": "x", "datatype": "INT64", "shape": [1], "data": b"\2" + bytes(7)}]}
        whole = {"rounds": 7, "ended": "until"}
        lacking = [{}, {"rounds": 7}, {"ended": "until"}]
        broken = [{"rounds": 0}, {"rounds": 101}, {"rounds": -1}, {"rounds": 2**64 - 1},
                  {"rounds": True}, {"rounds": 7.0}, {"rounds": "7"}, {"rounds": None},
                  {"rounds": b"\7\0\0\0", "ended": b"\1"}, {"ended": 1}, {"ended": ""}, {"ended": "UNTIL"},
                  {"ended": []}, {"ended": {}}, {"ended": b"\1"}]
        answers = [{**good, **end} for end in lacking] + [{**good, **whole, **end} for end in broken]
        for failure in self.failures(answers, long()):
            self.assertRegex(str(failure), "does not fit the job.*`ended`")
        (failure,) = self.failures([{**good, **whole}], long(until=None, time_ms=1))  # nobody says when it is done
        self.assertRegex(str(failure), "does not fit the job")
        error = {"status": "error", "error": {"code": "io", "message": "no"}}
        for answers, job in (([{**good, **whole}], {**numbered(2), "repeat": 100}), ([{**error, **whole}], long())):
            (failure,) = self.failures(answers, job)
            self.assertRegex(str(failure), "does not fit the job")

    def test_ends_that_an_array_cannot_have_fail_it_alone(self):
        rounds, ended = b"\7\0\0\0" * 3, bytes([1, 2, 3])
        broken = [{"rounds": rounds[:8]}, {"rounds": rounds + b"\0"}, {"rounds": 7}, {"rounds": [7] * 3},
                  {"rounds": bytes(12)}, {"rounds": b"\x65\0\0\0" * 3}, {"rounds": None}, {"ended": ended[:2]},
                  {"ended": ended * 2}, {"ended": "until"}, {"ended": [1, 2, 3]}, {"ended": bytes([1, 0, 3])},
                  {"ended": bytes([1, 5, 3])}]
        for failure in self.failures([{"rounds": rounds, "ended": ended, **end} for end in broken], long_array()):
            self.assertRegex(str(failure), "does not fit the job")
        (failure,) = self.failures([{"rounds": rounds, "ended": ended}], long_array(until=None, time_ms=1))
        self.assertRegex(str(failure), "does not fit the job")

    def test_no_answer_makes_a_client_allocate_more_than_the_job_asks_for(self):
        deep = 7
        for _ in range(500):
            deep = [deep]
        good = {"name": "x", "datatype": "INT64", "shape": [1]}
        answers = [{"outputs": [{**good, "data": 1_900_000_000}]}, {"outputs": [{**good, "data": bytes(900_000)}]},
                   {"more": [[] for _ in range(60_000)]}, {"more": deep}, {"more": [None] * 60_000}]
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for failure in self.failures(answers, numbered(1)):
            self.assertIsInstance(failure, ValueError)
        self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)

    def test_an_array_with_fewer_rows_than_were_sent_fails_each_of_them(self):
        rows = numpy.ones((5, 4), "<f4")

        def say(job):
            (result,) = echo_array(job)
            (output,) = result["outputs"]
            cut = {**output, "shape": [3, 4], "data": output["data"][:48]}
            return [{**result, "outputs": [cut], "telemetry": {"instances": 3}}]

        client = self.start(say, programs=[BATCHED])
        whole = client.program("saxpy").map(a=numpy.ones(5), x=gw.upload(X), y=gw.rows(rows))
        for row in [whole, *whole.futures]:
            self.assertRegex(str(row.exception(PATIENCE_S)), "does not fit the job")

    def serve(self, answer):
        """A store: `answer` writes to each connection."""
        class Store(socketserver.StreamRequestHandler):
            def handle(self):
                self.rfile.readline()
                with contextlib.suppress(OSError):
                    answer(self.wfile)

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Store)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def test_a_blob_store_that_never_ends_its_answer_holds_nobody(self):
        ok, end = b"HTTP/1.1 200 OK\r\n", b"\r\n"

        def endless(head, piece, wait_s=0):
            def answer(file):
                file.write(head)
                while True:
                    file.write(piece)
                    time.sleep(wait_s)
            return answer

        elsewhere = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n"
        for what, answer in {
            "an endless blob": endless(ok + end, bytes(65536)),
            "an endless head": endless(ok, b"a: b\r\n" * 1000),
            "an endless redirect": endless(elsewhere, bytes(65536)),
            "a slow blob": endless(ok + end, b"a", 0.05),
            "a slow head": endless(ok, b"a", 0.05),
            "a large blob that does not come": endless(ok + b"Content-Length: 99999999999\r\n\r\n", b"a", 0.05),
        }.items():
            with self.subTest(what), self.assertRaises((OSError, ValueError, http.client.HTTPException)):
                gw.HttpBlobStore(self.serve(answer), timeout_s=0.3).get("sha256:" + "0" * 64, 16)

    def test_a_blob_of_another_size_than_the_job_asks_for_is_not_read(self):
        class Liar:
            def get(self, name):
                return bytes(1000)

            def put(self, array):
                return ""

        with tempfile.TemporaryDirectory() as folder:
            name = gw.BlobStore(folder).put(numpy.zeros(100))
            output = {"name": "x", "datatype": "INT64", "shape": [1], "blob": name}
            for store in (folder, Liar()):
                (failure,) = self.failures([{"outputs": [output]}], numbered(1), blobs=store)
                self.assertRegex(str(failure), "bytes")

    def test_closing_without_waiting_ends_jobs_whose_blobs_wait_for_a_slow_store(self):
        gate, asked = threading.Event(), []

        class Slow:
            def get(self, name):
                asked.append(name)
                gate.wait(PATIENCE_S)
                return bytes(8)

            def put(self, array):
                return ""

        output = {"name": "x", "datatype": "INT64", "shape": [1], "blob": "sha256:" + "0" * 64}
        client = self.start(lambda job: [{"outputs": [output]}], blobs=Slow())
        futures = [client.submit(numbered(number)) for number in range(20)]
        while client._unanswered:
            time.sleep(0.01)
        closing = threading.Thread(target=client.close, args=(False,))
        closing.start()
        while not client._is_given_up:
            time.sleep(0.01)
        gate.set()
        closing.join()
        self.assertTrue(all(future.done() for future in futures))
        self.assertLess(len(asked), 20)
        closed = [future for future in futures if "closed" in str(future.exception())]
        self.assertGreaterEqual(len(closed), 20 - len(asked))


BATCHED = {**SAXPY, "entries": [{**SAXPY["entries"][0], "batched": True}]}


DONE = {"name": "done", "role": "out", "type": "UINT32"}
FIT = {**BATCHED, "name": "fit", "entries": [{**BATCHED["entries"][0], "args": [*SAXPY["entries"][0]["args"], DONE]}]}


def echo_array(job):
    """As echo(), with the shape and the telemetry of an array job."""
    (result,) = echo(job)
    for output in result["outputs"]:
        output["shape"] = [job["count"], *output["shape"]]
    return [{**result, "telemetry": {"instances": job["count"]}}]


class Maps(unittest.TestCase):
    """Which rows become array jobs, and what comes back."""

    def start(self, say=echo_array, **options):
        self.worker = FakeWorker(self, say)
        self.client = gw.Client(self.worker.address, "jobs", "results", programs=[BATCHED, FIT], **options)
        self.addCleanup(self.client.close, wait=False)
        return self.client.program("saxpy")

    def jobs_of(self, **args):
        """What a map sends, by counts: 0 is a single job."""
        sent = []
        sink = unittest.mock.Mock(submit=lambda job, *_: sent.append(job), store=None, gather=lambda futures: futures)
        saxpy = Program(sink, [BATCHED], "saxpy").options(**args.pop("options", {}))
        saxpy.map(**args)
        return sent

    def counts_of(self, **args):
        return [job.get("count", 0) for job in self.jobs_of(**args)]

    def test_rows_become_an_array_that_a_worker_accepts(self):
        rows = numpy.arange(12, dtype=">f4").reshape(3, 4)
        (job,) = self.jobs_of(a=[1, 2, 3], x=gw.upload(X), y=gw.rows(rows))
        self.assertEqual(("ok", ""), check_job.verdict(gw.encode(job)))
        self.assertEqual(3, job["count"])
        self.assertEqual([{"each": {"f32": numpy.array([1, 2, 3], "<f4").tobytes()}}, "x", "y", {"u32": 4}],
                         job["steps"][0]["args"])
        self.assertEqual(gw.upload(X), job["buffers"]["x"])
        self.assertEqual({**gw.upload(rows[0]), "each": True, "data": rows.astype("<f4").tobytes()}, job["buffers"]["y"])

    def test_what_only_the_kernel_writes_is_cleared_for_each_instance(self):
        (job,) = self.jobs_of(a=[1, 2, 3], x=gw.upload(X), y=gw.zeros([4], "<f4"))
        self.assertEqual({**gw.zeros([4], "<f4"), "each": True}, job["buffers"]["y"])

    def test_values_have_the_bits_that_single_jobs_give_them(self):
        numbers = [2**60 // 2**58 + 2**-40, 0.1, -7, numpy.float64(1) / 3]
        (job,) = self.jobs_of(a=numbers, x=gw.upload(X), y=gw.zeros([4], "<f4"))
        self.assertEqual(numpy.array(numbers, "<f8").astype("<f4").tobytes(), job["steps"][0]["args"][0]["each"]["f32"])

    def test_rows_of_words_are_a_block_for_each_instance(self):
        words = {"name": "block", "role": "value", "type": "words", "count": 2}
        entry = BATCHED["entries"][0]
        with unittest.mock.patch.dict(entry, args=[*entry["args"], words]):
            (job,) = self.jobs_of(a=1, x=gw.upload(X), y=gw.zeros([4], "<f4"), block=[[1, 2], [3, 2**32 - 1]])
            with self.assertRaisesRegex(ValueError, "block.*-1"):
                self.jobs_of(a=1, x=gw.upload(X), y=gw.zeros([4], "<f4"), block=[[1, 2], [3, -1]])
        self.assertEqual(("ok", ""), check_job.verdict(gw.encode(job)))
        self.assertEqual(2, job["count"])
        self.assertEqual({"each": {"words": numpy.array([1, 2, 3, 2**32 - 1], "<u4").tobytes()}}, job["steps"][0]["args"][-1])

    def test_arrays_are_cut_to_what_a_message_and_a_result_hold_and_to_the_instances_asked_for(self):
        ones = numpy.ones((400, 1000), "<f4")
        counts = self.counts_of(a=numpy.ones(400), x=gw.upload(ones[0]), y=gw.rows(ones))
        self.assertEqual(400, sum(counts))
        self.assertGreater(len(counts), 1)
        for job in self.jobs_of(a=numpy.ones(400), x=gw.upload(ones[0]), y=gw.rows(ones)):
            self.assertLess(len(gw.encode(job)), 1_000_000)
        answered = self.counts_of(a=numpy.ones(400), x=gw.upload(ones[0]), y=gw.zeros([1000], "<f4"))
        self.assertEqual([196, 196, 8], answered)
        self.assertEqual([3, 3, 1], self.counts_of(a=numpy.ones(7), x=gw.upload(X), y=gw.zeros([4], "<f4"),
                                                   options={"instances": 3}))

    def test_what_an_array_cannot_say_is_sent_as_single_jobs(self):
        rows = numpy.ones((3, 4), "<f4")
        static, resident = gw.Static(X), gw.Resident(unittest.mock.Mock(draw=lambda: "1"), "r", X)
        good = {"a": numpy.ones(3), "x": static, "y": gw.rows(rows)}
        large = numpy.ones((3, 200_000), "<f4")
        self.assertEqual([3], self.counts_of(**good))
        for why, args in {
            "a job for each row is asked for": {**good, "options": {"instances": 1}},
            "the time-out is of one row": {**good, "options": {"timeout_ms": 1000}},
            "a resident": {**good, "y": resident},
            "a written buffer that all rows begin with": {**good, "y": gw.upload(X)},
            "an output of a shared buffer": {**good, "options": {"outputs": ["x"]}},
            "two rows are larger than a message": {**good, "x": gw.Static(large[0]), "y": gw.rows(large)},
        }.items():
            with self.subTest(why):
                self.assertEqual([0, 0, 0], self.counts_of(**args))
        self.assertEqual([0], self.counts_of(a=[1], x=static, y=gw.rows(rows[:1])))
        with unittest.mock.patch.dict(BATCHED["entries"][0], batched=False):
            self.assertEqual([0, 0, 0], self.counts_of(**good))

    def test_a_row_that_the_manifest_does_not_take_is_named_before_anything_is_sent(self):
        good = {"a": numpy.ones(3), "x": gw.upload(X), "y": gw.rows(numpy.ones((3, 4), "<f4"))}
        for error, words, args in [
            (ValueError, "'a' is 9.0, and the kernel takes -8 to 8", {**good, "a": [1, 9, 10]}),
            (ValueError, "'a' is nan", {**good, "a": [1, float("nan"), 9]}),
            (ValueError, "'a' is inf", {**good, "a": [1, float("inf"), 9]}),
            (ValueError, "n is 5, and x has 4", {**good, "n": [4, 4, 5]}),
            (TypeError, "'n' is .*, and the kernel takes a whole number", {**good, "n": [4, 2.5, 4]}),
            (TypeError, "'y' is FP64", {**good, "y": gw.rows(numpy.ones((3, 4)))}),
            (ValueError, "one length", {**good, "a": [1, 2]}),
            (ValueError, "no row", {**good, "a": [], "y": gw.rows(numpy.ones((0, 4), "<f4"))}),
        ]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.jobs_of(**args)

    def test_what_an_argument_is_to_the_rows_is_said_and_is_the_same_whatever_their_number(self):
        table = numpy.ones((3, 4), "<f4")
        for count in (1, 2, 3, 4):
            good = {"a": numpy.ones(count), "y": gw.rows(numpy.ones((count, 4), "<f4"))}
            for unsaid in (table, table.tolist()):
                with self.assertRaisesRegex(TypeError, r"say what 'x' is .* gw.rows\(x\).* gw.upload\(x\)"):
                    self.jobs_of(**good, x=unsaid)
            for shared in (gw.upload(table), gw.Static(table)):
                for most, counts in {4: [count if count > 1 else 0], 1: [0] * count}.items():
                    jobs = self.jobs_of(**good, x=shared, options={"instances": most})
                    self.assertEqual(counts, [job.get("count", 0) for job in jobs])
                    self.assertTrue(all(job["buffers"]["x"] is shared for job in jobs))
            if count != 3:
                with self.assertRaisesRegex(ValueError, "one length, the number of rows"):
                    self.jobs_of(**good, x=gw.rows(table))

    def test_rows_of_what_has_none_and_rows_of_no_map_are_named(self):
        for of in (gw.upload(X), gw.Static(X), gw.zeros([4], "<f4")):
            with self.assertRaisesRegex(TypeError, r"gw.rows\(\) takes an array.*pass it alone"):
                gw.rows(of)
        saxpy = Program(unittest.mock.Mock(store=None), [BATCHED], "saxpy")
        for use in (lambda rows: saxpy(a=1, x=rows, y=Y), lambda rows: saxpy.map(a=[1], x=gw.rows(rows), y=Y), gw.upload,
                    gw.Static):
            with self.assertRaisesRegex(TypeError, r"gw.rows\(\) says to a map\(\).*pass the array alone"):
                use(gw.rows([X]))

    def test_nested_lists_are_rows_of_the_type_that_the_kernel_takes(self):
        (job,) = self.jobs_of(a=[1, 2], x=gw.upload(X), y=gw.rows([[1, 2, 3, 4], [5, 6, 7, 8]]))
        self.assertEqual(numpy.arange(1, 9, dtype="<f4").tobytes(), job["buffers"]["y"]["data"])

    def test_whoever_waits_for_rows_waits_for_messages(self):
        saxpy = self.start()
        rows = gw.rows(numpy.ones((10, 4), "<f4"))
        whole = saxpy.options(instances=4).map(a=numpy.ones(10), x=gw.upload(X), y=rows)
        waited_for = []

        def as_completed(futures, timeout):
            waited_for.extend(futures)
            return concurrent.futures._base.as_completed(futures, timeout)

        with unittest.mock.patch("gpu_worker.futures.concurrent.futures.as_completed", as_completed):
            self.assertCountEqual(whole.futures, gw.as_completed(whole.futures, PATIENCE_S))
        self.assertCountEqual(whole.messages, waited_for)
        self.assertEqual([4, 4, 2], [answer["telemetry"]["instances"] for answer in whole.answers])

    def test_rows_come_back_stacked_and_each_has_a_future(self):
        saxpy = self.start()
        rows = numpy.arange(40, dtype="<f4").reshape(10, 4)
        whole = saxpy.options(instances=4, name="mine").map(a=numpy.ones(10), x=gw.upload(X), y=gw.rows(rows))
        numpy.testing.assert_array_equal(rows, whole.result(PATIENCE_S)["y"])
        self.assertCountEqual([4, 4, 2], [job["count"] for job in self.worker.jobs])
        self.assertEqual([f"mine[{row}]" for row in range(10)], [future.name for future in whole.futures])
        numpy.testing.assert_array_equal(rows, [future.result(PATIENCE_S)["y"] for future in whole.futures])
        self.assertIs(whole.futures, whole.futures)
        self.assertTrue(all(future.answer["status"] == "ok" for future in gw.as_completed(whole.futures, PATIENCE_S)))

    def test_an_array_that_fails_fails_its_rows_and_no_other(self):
        saxpy = self.start(lambda job: echo_array(job) if job["id"].startswith("saxpy[0:4]") else [failed("bad_launch")])
        whole = saxpy.options(instances=4).map(a=numpy.ones(8), x=gw.upload(X), y=gw.rows(numpy.ones((8, 4), "<f4")))
        with self.assertRaisesRegex(gw.JobFailed, r"saxpy\[4:8\]: bad_launch"):
            whole.result(PATIENCE_S)
        for row, future in enumerate(whole.futures):
            if row < 4:
                self.assertEqual([1, 1, 1, 1], future.result(PATIENCE_S)["y"].tolist())
            else:
                self.assertEqual(f"saxpy[{row}]: bad_launch: no\ndo", str(future.exception(PATIENCE_S)))

    def test_rows_of_an_array_end_with_it_when_it_is_cancelled_or_the_client_is_closed(self):
        saxpy = self.start(lambda job: [])
        args = {"a": numpy.ones(3), "x": gw.upload(X), "y": gw.rows(numpy.ones((3, 4), "<f4"))}
        cancelled, left = saxpy.map(**args), saxpy.map(**args)
        rows = cancelled.futures
        self.assertTrue(cancelled.cancel())
        self.assertTrue(all(row.cancelled() for row in rows))
        self.client.close(wait=False)
        for row in left.futures:
            with self.assertRaisesRegex(ConnectionError, "closed"):
                row.result(PATIENCE_S)

    def long_map(self, count, **options):
        """Of a program whose argument `done` says that a row is done; its options, and as many rows."""
        fit = self.client.program("fit").options(until="done", repeat=100, outputs=["y"], **options)
        return fit.map(a=numpy.ones(count), x=gw.upload(X), y=gw.rows(numpy.ones((count, 4), "<f4")), done=())

    def test_rows_of_a_long_map_are_done_by_themselves(self):
        def say(job):
            (result,) = echo_array(job)
            numbers = range(1, job["count"] + 1)
            rounds = b"".join(number.to_bytes(4, "little") for number in numbers)
            return [{**result, "rounds": rounds, "ended": bytes(number % 2 * 3 or 1 for number in numbers)}]

        self.start(say)
        whole = self.long_map(10, instances=4)
        self.assertEqual((10, 4), whole.result(PATIENCE_S)["y"].shape)
        self.assertCountEqual([4, 4, 2], [job["count"] for job in self.worker.jobs])
        for job in self.worker.jobs:
            self.assertEqual(("ok", ""), check_job.verdict(gw.encode({**job, "id": "row"})))
            self.assertEqual({"bytes": 4, "datatype": "UINT32", "shape": [], "each": True}, job["buffers"]["done"])
        rounds = [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
        ended = ["time" if number % 2 else "until" for number in rounds]
        self.assertEqual((rounds, ended), (whole.rounds.tolist(), whole.ended.tolist()))
        self.assertEqual((rounds, ended), tuple(map(list, zip(*((row.rounds, row.ended) for row in whole.futures)))))

    def test_rows_of_a_long_map_that_are_single_jobs_have_their_ends_stacked_as_well(self):
        self.start(lambda job: [{**echo(job)[0], "rounds": 7, "ended": "until"}])
        whole = self.long_map(2, instances=1)
        whole.result(PATIENCE_S)
        self.assertEqual(([7, 7], ["until"] * 2), (whole.rounds.tolist(), whole.ended.tolist()))

    def test_a_long_map_is_stopped_message_by_message(self):
        gate = threading.Event()

        def say(job):
            gate.wait(PATIENCE_S)
            rounds = b"\7\0\0\0" * job.get("count", 0)
            return [] if "action" in job else [{**echo_array(job)[0], "rounds": rounds, "ended": b"\4" * job["count"]}]

        self.start(say, control="jobs")
        whole = self.long_map(8, instances=4)
        self.assertFalse(whole.futures[0].stop())  # one row of an array
        self.assertTrue(whole.stop())
        gate.set()
        whole.result(PATIENCE_S)
        self.assertEqual(["stop"] * 8, whole.ended.tolist())
        self.client.close()
        told = [job["id"] for job in self.worker.jobs if "action" in job]
        self.assertCountEqual([future.id for future in whole.messages], told)

    def test_an_output_without_a_shape_is_a_row_for_each_instance(self):
        result = {"id": "x", "status": "ok", "telemetry": {"instances": 2}, "outputs": [{"name": "y", "data": b"abcd"}]}
        self.assertEqual([[97, 98], [99, 100]], gw.arrays(result)["y"].tolist())


class Programs(unittest.TestCase):
    def setUp(self):
        self.sent = []
        sink = unittest.mock.Mock(submit=lambda job, key: self.sent.append(job))
        self.saxpy = Program(sink, [SAXPY], "saxpy")

    def test_a_call_is_a_job_that_a_worker_accepts(self):
        job = self.saxpy.job(a=2, x=X, y=[1, 1, 1, 1])
        buffers = {name: gw.upload(array) for name, array in job["buffers"].items()}
        self.assertEqual(("ok", ""), check_job.verdict(gw.encode({**job, "buffers": buffers})))
        self.assertEqual([{"program": "saxpy", "args": [{"f32": 2.0}, "x", "y", {"u32": 4}], "elements": 4}], job["steps"])
        self.assertEqual([{"buffer": "y"}], job["outputs"])

    def test_a_long_job_is_checked_before_it_is_sent(self):
        fit = Program(unittest.mock.Mock(submit=lambda job, key: job), [FIT], "fit")
        good = {"a": 1, "x": X, "y": Y, "done": ()}
        job = fit.options(until="done", repeat=100, time_ms=1000)(**good)
        self.assertEqual(({"buffer": "done"}, 100, 1000), (job["until"], job["repeat"], job["time_ms"]))
        for error, words, options, done in [
            (TypeError, "how many rounds", {"until": "done"}, ()),
            (TypeError, "how many rounds", {"time_ms": 1}, ()),
            (TypeError, "`until` names 'x', which the kernel does not write", {"until": "x", "repeat": 1}, ()),
            (TypeError, "`until` names 'z'", {"until": "z", "repeat": 1}, ()),
            (ValueError, "'done' has 8 bytes", {"until": "done", "repeat": 1}, (2,)),
        ]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                fit.options(**options)(**{**good, "done": done})

    def test_what_has_a_type_keeps_it_and_numbers_of_python_that_the_kernels_cannot_hold_are_named(self):
        class Foreign:
            def __array__(self, dtype=None, copy=None):
                return X.astype("<f8")

        good = {"a": 1, "x": X, "y": Y}
        doubles = array.array("d", [1, 2, 3, 4])
        for value in (Foreign(), doubles, memoryview(doubles), [numpy.float64(1)] * 4, [numpy.int64(1)] * 4, [1j] * 4, ["1"] * 4,
                      [None] * 4, [object()] * 4, numpy.ones(4, "longdouble"), numpy.ones(4, object), X.astype("c8")):
            with self.subTest(value=value), self.assertRaisesRegex(TypeError, "saxpy: 'x' (is|has elements of type) [A-Za-z<]"):
                self.saxpy(**{**good, "x": value})
        for value, error in {(1, 2, 3, 1e300): ValueError, (1, (2,), 3, 4): (TypeError, ValueError), (1, 2, 3, 10**400): TypeError}.items():
            with self.subTest(value=value), self.assertRaisesRegex(error, "saxpy: 'x'"):
                self.saxpy(**{**good, "x": list(value)})
        for value in (1j, numpy.complex128(1), 10**400, numpy.longdouble("1e400")):
            with self.subTest(value=value), self.assertRaisesRegex((TypeError, ValueError), "saxpy: 'a' is"):
                self.saxpy(**{**good, "a": value})
        self.saxpy(**{**good, "x": [1, 2.5, True, float("inf")]})
        with unittest.mock.patch.dict(SAXPY["entries"][0]["args"][1], type="UINT32"):
            for value in ([-1] * 4, [1.5] * 4, [float("nan")] * 4, [2**32] * 4, [numpy.int64(-1)] * 4, array.array("q", [-1] * 4)):
                with self.subTest(value=value), self.assertRaisesRegex((TypeError, ValueError), "saxpy: 'x'"):
                    self.saxpy(**{**good, "x": value})
            self.saxpy(**{**good, "x": array.array("I", [1, 2, 3, 4])})

    def test_arguments_that_the_manifest_does_not_take_are_named(self):
        good = {"a": 1, "x": X, "y": Y}
        for error, words, args in [
            (TypeError, "'y' is missing", {"a": 1, "x": X}), (TypeError, "'a' is missing", {"x": X, "y": Y}),
            (TypeError, "no argument 'z'", {**good, "z": 1}),
            (TypeError, r"'x' is FP64, .* FP32: use .astype\('float32'\)", {**good, "x": X.astype("<f8")}),
            (ValueError, "n is 5, and x has 4", {**good, "n": 5}),
            (ValueError, "'n' is -1, and u32 goes from 0", {**good, "n": -1}),
            (TypeError, "'n' is 2.5, and the kernel takes a whole number", {**good, "n": 2.5}),
            (TypeError, r"saxpy: 'a' is None, and the kernel takes a number \(f32\)", {**good, "a": None}),
            (TypeError, r"saxpy: 'a' is '2', and the kernel takes a number \(f32\)", {**good, "a": "2"}),
            (TypeError, r"saxpy: 'n' is \[1, 2\], and the kernel takes a number \(u32\)", {**good, "n": [1, 2]}),
            (ValueError, "'a' is 9.0, and the kernel takes -8 to 8", {**good, "a": 9}),
            (ValueError, "'a' is nan", {**good, "a": float("nan")}),
        ]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.saxpy(**args)
        with self.assertRaisesRegex(ValueError, r"blocks \* 2 \+ 1 is 5, and x has 4"):
            self.saxpy.options(grid=2)(**good)
        with self.assertRaisesRegex(LookupError, "no program 'saxpi'; there is saxpy"):
            Program(None, [SAXPY], "saxpi")
        self.assertEqual([], self.sent)


if __name__ == "__main__":
    unittest.main()
