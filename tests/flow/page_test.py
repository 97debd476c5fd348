"""/status.json, the page at / in a real browser, and gpu-worker top, of a worker with the broker inside it.
usage: page_test.py BUILD_FOLDER"""

import contextlib
import fcntl
import functools
import html
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import termios
import unittest

import jsonschema
from worker_flow import BINARY, BUILD, PATIENCE_S, ROOT, FlowTest, ask, reserve_address

CLEAR = b"\x1b[H\x1b[2J"
HOSTILE = "<img src=x onerror=document.title='taken'>"
JOB = """
id: "%s"
buffers: {x: {data: {f32: [1, 2]}, datatype: FP32}, y: {data: {f32: [3, 4]}, datatype: FP32}}
steps: [{program: %s, args: [{f32: 10}, x, y, {u32: 2}], elements: 2}]
outputs: [{buffer: y}]
"""
# A machine on which nothing else of the page's can be seen: a root's browser has no sandbox of its own.
BROWSER = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]


@functools.cache
def can_browse():
    """Where mounts or seccomp forbid a browser its processes, it cannot even draw nothing."""
    if shutil.which("chromium") is None:
        return False
    try:
        drawn = subprocess.run([*BROWSER, "--dump-dom", "about:blank"], capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return False
    return "<html>" in drawn.stdout


class PageTest(FlowTest):
    def start(self, **more):
        self.address = reserve_address(self)
        broker = self.folder / "address"
        worker = self.start_worker({
            "driver": "cpu", "lanes": 1, "broker": "embedded", "embedded": {"address_file": str(broker)},
            "http": {"listen": self.address} | more, "retry": {"max_attempts": 1}})
        self.wait_until(broker.exists, "the embedded broker is there")
        self.wait_until(lambda: self.ask("/readyz"), "the worker is ready", is_met=lambda said: said[0] == 200)
        return worker

    def ask(self, page, **headers):
        return ask(self.address, page, headers)

    def submit(self, name, program):
        job = self.folder / "job.yaml"
        job.write_text(JOB % (name, program))
        subprocess.run([BINARY, "submit", "--config", self.folder / "worker.yaml", job], capture_output=True, timeout=PATIENCE_S)

    def status(self):
        found = json.loads(self.ask("/status.json")[1])
        jsonschema.validate(found, json.loads((ROOT / "schemas/status.schema.json").read_text()))
        return found

    def wait_for_answers(self, count):
        """Acknowledged ones."""
        self.wait_until(lambda: self.status()["devices"][0]["jobs"], f"{count} answers",
                        is_met=lambda jobs: sum(job["count"] for job in jobs) == count)

    def browse(self, *options):
        drawn = subprocess.run([*BROWSER, "--virtual-time-budget=7000", *options, "--dump-dom", f"http://{self.address}/"],
                               capture_output=True, text=True, timeout=PATIENCE_S)
        return drawn.stdout

    def text_of(self, dom):
        return html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style)>.*?</\1>", "", dom, flags=re.DOTALL)))

    def test_status_says_what_became_of_jobs(self):
        worker = self.start()
        self.submit("good", "saxpy")
        self.submit(HOSTILE, "nonsense")
        self.wait_for_answers(2)
        self.wait_until(lambda: self.status()["devices"][0]["now"] is not None, "the executor shows how things stand")
        status = self.status()
        device = status["devices"][0]
        self.assertEqual((status["is_ready"], status["problems"]), (True, []))
        self.assertEqual((device["standing"], device["executor"]["starts"]), ("working", 1))
        self.assertCountEqual(device["jobs"], [{"program": "saxpy", "code": "ok", "count": 1},
                                               {"program": "", "code": "unknown_program", "count": 1}])
        self.assertEqual(sum(device["stages"]["total"]["buckets"]), 2)
        failure = device["failures"][0]
        self.assertEqual((failure["id"], failure["code"], failure["is_dead_letter"]), (HOSTILE, "unknown_program", True))
        self.assertGreater(len(failure["fix"]), 0)
        self.stop_well(worker)

    def top(self, *options):
        return subprocess.run([BINARY, "top", "--config", self.folder / "worker.yaml", *options], capture_output=True,
                              text=True, timeout=PATIENCE_S)

    def test_top_shows_the_same_in_a_terminal_and_no_sender_steers_it(self):
        worker = self.start()
        self.submit("good", "saxpy")
        self.submit("\\e[31mred\\r\\u009b", "nonsense")
        self.wait_for_answers(2)
        shown = self.top()
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        for said in (": ready\n", "working", "2 answered, 1 dead letters", "unknown_program, job ?[31mred??:", "fix: "):
            self.assertIn(said, shown.stdout)
        self.assertRegex(shown.stdout, r"(?m)^total +\S+ \S+ +\S+ \S+ *$")
        self.assertFalse([c for c in shown.stdout if not c.isprintable() and c != "\n"], "controls reach the terminal")
        asked = json.loads(self.top("--json").stdout)
        self.assertEqual(asked["devices"][0]["standing"], "working")
        self.stop_well(worker)
        gone = self.top()
        self.assertEqual(gone.returncode, 1)
        self.assertIn("check that the worker runs", gone.stderr)

    def draw(self, rows, columns, kind="xterm"):
        """`top` in a terminal of that size: where it is read, and the process."""
        terminal, other = pty.openpty()
        os.set_blocking(terminal, False)
        self.addCleanup(os.close, terminal)
        termios.tcsetwinsize(other, (rows, columns))

        def own_the_terminal():  # so that it hears of another size
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
        process = subprocess.Popen([BINARY, "top", "--config", self.folder / "worker.yaml"], stdin=subprocess.DEVNULL,
                                   stdout=other, env=os.environ | {"TERM": kind}, preexec_fn=own_the_terminal)
        os.close(other)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return terminal, process

    def read_pages(self, terminal, condition):
        """What is drawn, page by page, until the condition holds of the latest."""
        drawn = bytearray()

        def look():
            with contextlib.suppress(BlockingIOError):
                drawn.extend(os.read(terminal, 65536))
            return bytes(drawn)
        self.wait_until(look, "such a page", is_met=lambda drawn: condition(drawn.rpartition(CLEAR)[2]))
        return [page.decode().replace("\r\n", "\n") for page in drawn.split(CLEAR)[1:]]

    def rows_of(self, page, columns):
        return sum(max(1, -(-len(line) // columns)) for line in page.split("\n"))

    def test_top_draws_again_and_again_what_fits_the_terminal(self):
        worker = self.start()
        self.submit("bad", "nonsense")
        self.wait_for_answers(1)
        terminal, process = self.draw(rows=100, columns=200)
        pages = self.read_pages(terminal, lambda page: b"jobs a second" in page and b"fix: " in page)
        self.assertGreaterEqual(len(pages), 2, "only a second look can know the rate")
        for rows, columns in ((24, 80), (12, 30), (100, 200)):
            termios.tcsetwinsize(terminal, (rows, columns))
            end = b"fix: " if rows == 100 else b"... (more in a larger window)"
            self.read_pages(terminal, lambda page: end in page)  # of this size, or one that was being drawn
            page = self.read_pages(terminal, lambda page: end in page)[-1]
            self.assertTrue(page.startswith("gpu-worker "), page)
            self.assertLessEqual(self.rows_of(page, columns), rows, page)
        os.kill(process.pid, signal.SIGINT)
        self.assertEqual(process.wait(PATIENCE_S), -signal.SIGINT)
        terminal, process = self.draw(rows=24, columns=80, kind="dumb")
        self.assertEqual(process.wait(PATIENCE_S), 0)
        said = os.read(terminal, 65536)
        self.assertIn(b"jobs", said)
        self.assertNotIn(b"\x1b", said)
        self.stop_well(worker)

    def test_what_nvml_measures_is_shown(self):
        self.use_environment({"LD_LIBRARY_PATH": str((BUILD / "tests/gpu/fake_nvml").resolve()), "FAKE_NVML": "fine"})
        worker = self.start()
        self.wait_until(lambda: self.status()["devices"][0]["usage"]["memory_bytes"] is not None, "it is read")
        usage = self.status()["devices"][0]["usage"]
        self.assertEqual((usage["utilisation_percent"], usage["power_milliwatts"], usage["ecc_uncorrected"]), (75, 312500, 2))
        self.assertIn("device: 20.0 GiB of 80.0 GiB, 75 % busy, 41 C, 312 W, 2 memory errors\n", self.top().stdout)
        self.assertIn(" 0 of 1 lanes busy; device pool", self.top().stdout)
        for line in ("memory_used_bytes{.*} 21474836480", "utilization_ratio{.*} 0.75", "temperature_celsius{.*} 41",
                     "power_watts{.*} 312.5", 'ecc_errors_total{.*kind="uncorrected"} 2'):
            self.assertRegex(self.ask("/metrics")[1], f"(?m)^gpu_worker_device_{line}$")
        if can_browse():
            for said in ("20.0 GiB of 80.0 GiB", "75 %", "41 °C", "313 W", "Memory errors"):
                self.assertIn(said, self.text_of(self.browse()))
        self.stop_well(worker)

    def test_top_brings_the_token(self):
        token = self.folder / "token"
        token.write_text(" s3cret\n")
        worker = self.start(token_file=str(token))
        self.assertIn("working", self.top().stdout)
        self.stop_well(worker)

    def test_a_browser_draws_it_and_runs_nothing_that_a_sender_wrote(self):
        if not can_browse():
            self.skipTest("no browser can run here")
        worker = self.start()
        self.submit("good", "saxpy")
        self.submit(HOSTILE, "nonsense")
        self.wait_for_answers(2)
        status, page, headers = self.ask("/")
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertNotIn("unsafe", policy)
        for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
            self.assertIn(part, policy)
        self.assertNotRegex(page, r"(src|href)=\"(?!data:)", "no outside assets")
        dom = self.browse("--window-size=390,800")
        text = self.text_of(dom)
        self.assertIn("ready – gpu-worker", dom)
        for said in ("1 of 1", "saxpy", "unknown_program", "Stage times", HOSTILE):
            self.assertIn(said, text)
        self.assertNotIn("<img", dom, "a text of a sender has become a part of the page")
        self.stop_well(worker)

    def test_with_a_token_the_page_asks_for_it_and_status_is_refused(self):
        token = self.folder / "token"
        token.write_text("s3cret\n")
        worker = self.start(token_file=str(token))
        self.assertEqual(self.ask("/")[0], 200)
        self.assertEqual(self.ask("/status.json")[0], 401)
        self.assertEqual(self.ask("/status.json", Authorization="Bearer s3cret")[0], 200)
        if can_browse():
            dom = self.browse()
            self.assertIn("a token is needed – gpu-worker", dom)
            self.assertNotIn("1 of 1", self.text_of(dom))
        self.stop_well(worker)


if __name__ == "__main__":
    unittest.main(verbosity=2)
