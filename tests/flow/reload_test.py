"""SIGHUP: a worker reads its configuration and programs again, and never ends by it.
usage: reload_test.py BUILD_FOLDER"""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from answering import answer, answered_by, install_answer
from gate import Gate, is_right, paced
from worker_flow import BINARY, BUILD, PATIENCE_S, SLOW, SLOWER, FlowTest, ask, is_saxpy, reserve_address, saxpy, write_aside

import gpu_worker as gw
import msgpack

PROGRAMS = BUILD / "share/gpu-worker/programs"


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def holds_back_hangups(pid):
    return bool(int(status_of(pid)["SigBlk"], 16) & 1 << (signal.SIGHUP - 1))


def executor_of(pid):
    """The process that runs the jobs: a child, or without a supervisor the worker itself."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else pid


def unknown(number):
    return saxpy(number) | {"steps": [gw.step("nope", [], grid=[1])]}


def merged(config, change):
    return config | {name: (config.get(name, {}) | value if isinstance(value, dict) else value)
                     for name, value in change.items()}


class ReloadTest(FlowTest):
    """A worker whose jobs come through a pipe, and whose results stand in a file."""

    def setUp(self):
        super().setUp()
        self.config, self.results = self.folder / "worker.yaml", self.folder / "results"
        self.programs = self.folder / "programs"
        shutil.copytree(PROGRAMS / "saxpy", self.programs / "saxpy")

    def write_config(self, **config):
        write_aside(self.config, json.dumps(
            merged({"driver": "cpu", "lanes": 2, "programs": {"dir": str(self.programs)}}, config)))

    def install_answer(self, image):
        install_answer(self.programs, image)

    def start(self, *arguments, jobs="-"):
        self.log = self.folder / "log"
        self.results.unlink(missing_ok=True)
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [BINARY, "run", "--config", self.config, "--jobs", jobs, "--results", self.results, *arguments],
                stdin=subprocess.PIPE, stdout=output, stderr=output,
                env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state"),
                                  "TMPDIR": str(self.folder)})  # which is where a killed worker leaves its own
        process = self.process
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_until(lambda: process.poll() is not None or holds_back_hangups(process.pid),
                        "a worker that holds hangups back")

    def send(self, *jobs):
        self.process.stdin.write(b"".join(map(msgpack.packb, jobs)))
        self.process.stdin.flush()

    def answers(self):
        """By id; the last one may stand there in part."""
        found = {}
        if self.results.exists():
            unpacker = msgpack.Unpacker()
            unpacker.feed(self.results.read_bytes())
            for result in unpacker:
                self.assertNotIn(result["id"], found)
                found[result["id"]] = result
        return found

    def wait_while_it_runs(self, look, what, is_met=bool):
        def look_again():
            self.assertIsNone(self.process.poll(), self.log.read_text())
            return look()
        return self.wait_until(look_again, what, is_met=is_met)

    def wait_for(self, job):
        return self.wait_while_it_runs(lambda: self.answers().get(job["id"]), f"an answer to {job['id']}")

    def ask(self, job):
        self.send(job)
        return self.wait_for(job)

    def count_lines(self, text):
        return sum(text in line for line in self.log.read_text(errors="replace").splitlines())

    def wait_for_line(self, text, count=1):
        self.wait_until(lambda: self.count_lines(text), text, is_met=lambda found: found >= count)

    def hang_up_and_wait_for(self, text):
        before = self.count_lines(text)
        self.process.send_signal(signal.SIGHUP)
        self.wait_while_it_runs(lambda: self.count_lines(text), text, lambda found: found > before)

    def reload(self):
        self.hang_up_and_wait_for(" reloaded: ")

    def end(self, code=0):
        self.process.stdin.close()
        self.assertEqual(self.process.wait(PATIENCE_S), code, self.log.read_text())

    # what never ends a worker

    def test_hangups_end_no_worker_from_its_start_to_its_end(self):
        for options in ([], ["--no-supervisor"]):
            self.write_config()
            self.start(*options)
            for number in range(50):
                self.process.send_signal(signal.SIGHUP)
                self.send(saxpy(number))
            self.process.stdin.close()

            def has_ended():
                self.process.send_signal(signal.SIGHUP)
                return self.process.poll() is not None
            self.wait_until(has_ended, "the end of the run", PATIENCE_S)
            self.assertEqual(self.process.returncode, 0, self.log.read_text())
            answers = self.answers()
            self.assertEqual(len(answers), 50)
            self.assertTrue(all(is_saxpy(answers[f"job-{number}"], number) for number in range(50)))

    def test_no_hangup_is_lost_however_early_or_often(self):
        for options in ([], ["--no-supervisor"]):
            self.install_answer(1)
            self.write_config()
            self.start(*options)
            for number in range(20):
                self.install_answer(1 + number % 2)
                self.process.send_signal(signal.SIGHUP)
            numbers = itertools.count()
            self.wait_while_it_runs(lambda: answered_by(self.ask(answer(next(numbers)))), "what was installed last answers",
                                    is_met=lambda image: image == 2)
            self.end()

    def test_a_hangup_while_a_worker_drains_changes_nothing(self):
        for options in ([], ["--no-supervisor"]):
            self.write_config(**SLOWER)
            self.start(*options)
            self.send(*map(saxpy, range(200)))
            self.wait_for(saxpy(0))
            self.process.terminate()
            self.wait_for_line("stopping: ")
            self.process.send_signal(signal.SIGHUP)
            self.assertEqual(self.process.wait(PATIENCE_S), 6, self.log.read_text())
            self.assertEqual(self.count_lines("reloaded: "), 0)

    # programs

    def test_programs_are_added_changed_and_removed_while_jobs_run(self):
        for options in ([], ["--no-supervisor"]):
            shutil.rmtree(self.programs / "answer", ignore_errors=True)
            self.write_config(retry={"max_attempts": 1})
            self.start(*options)
            self.assertEqual(self.ask(answer(1))["error"]["code"], "unknown_program")
            self.install_answer(1)
            self.reload()
            self.assertEqual(answered_by(self.ask(answer(2))), 1)
            self.install_answer(2)
            self.assertEqual(answered_by(self.ask(answer(3))), 1, "nobody has asked for a reload")
            self.reload()
            self.assertEqual(answered_by(self.ask(answer(4))), 2)
            shutil.rmtree(self.programs / "answer")
            self.reload()
            self.assertEqual(self.ask(answer(5))["error"]["code"], "unknown_program")
            self.assertTrue(is_saxpy(self.ask(saxpy(6)), 6))
            self.end(7)

    def test_jobs_that_were_taken_before_a_reload_end_as_they_began(self):
        # One after the other, and slow: some are in the worker at each reload.
        self.install_answer(1)
        self.write_config(**SLOW | {"lanes": 1})
        self.start()
        images = []
        for batch in range(6):
            self.send(*(answer(100 * batch + number) for number in range(40)))
            self.wait_for(answer(100 * batch))
            self.install_answer(1 + (batch + 1) % 2)
            self.reload()
            self.wait_while_it_runs(lambda: len(self.answers()), "all answers", lambda found: found == 40 * (batch + 1))
            images.append([answered_by(self.answers()[f"job-{100 * batch + number}"]) for number in range(40)])
        for batch, found in enumerate(images):
            first, second = 1 + batch % 2, 1 + (batch + 1) % 2
            self.assertEqual(found[0], first)
            # What was still in the pipe then came under the new one; nothing goes back to the old.
            count = found.count(first)
            self.assertEqual(found, [first] * count + [second] * (40 - count))
        self.end()

    def test_a_configuration_and_programs_behind_links_are_found_where_the_links_lead_now(self):
        self.install_answer(1)
        self.write_config()
        data = self.folder / "..data"
        for name, image in (("one", 1), ("two", 2)):
            self.install_answer(image)
            shutil.copytree(self.programs, self.folder / name / "programs")
            (self.folder / name / "worker.yaml").write_text(
                json.dumps({"driver": "cpu", "programs": {"dir": str(data / "programs")}}))
        data.symlink_to("one")
        self.config = data / "worker.yaml"
        self.start()
        self.assertEqual(answered_by(self.ask(answer(1))), 1)
        (self.folder / "..next").symlink_to("two")
        (self.folder / "..next").rename(data)
        shutil.rmtree(self.folder / "one")
        self.reload()
        self.assertEqual(answered_by(self.ask(answer(2))), 2)
        self.end()

    # settings

    def reloading_settings(self):
        schema = json.loads(subprocess.run([BINARY, "config", "schema"], capture_output=True, check=True).stdout)
        found = set()
        for name, value in schema["properties"].items():
            for key, setting in value.get("properties", {"": value}).items():
                if setting["description"].endswith(" Reloads."):
                    found.add(f"{name}.{key}".rstrip("."))
        return found

    def test_every_setting_that_claims_to_reload_does(self):
        hour = {"max_attempts": 30, "base_ms": "1ms", "max_ms": "1h"}
        elsewhere = self.folder / "elsewhere"
        shutil.copytree(self.programs / "saxpy", elsewhere / "saxpy")
        self.install_answer(1)
        two_steps = saxpy(0) | {"steps": saxpy(0)["steps"] * 2}
        one = saxpy(0, 1000)
        two_instances = one | {"count": 2, "buffers": {
            name: buffer | {"each": True, "data": buffer["data"] * 2} for name, buffer in one["buffers"].items()}}
        # What stands in the file before and after, the job, and how it is answered: a code, or how often the
        # job was tried; None: it waits.
        table = {
            "programs.dir": ({}, {"programs": {"dir": str(elsewhere)}}, answer(0), "ok", 1),
            "retry.max_attempts": ({"retry": {"max_attempts": 1}}, {"retry": {"max_attempts": 2, "base_ms": 1}},
                                   unknown(0), 1, 2),
            "retry.base_ms": ({"retry": {"max_attempts": 2, "base_ms": "1h", "max_ms": "1h"}},
                              {"retry": {"max_attempts": 2, "base_ms": "1ms", "max_ms": "1h"}}, unknown(0), None, 2),
            "retry.max_ms": ({"retry": hour}, {"retry": hour | {"max_ms": "1ms"}}, unknown(0), None, 30),
            "topics.reply_to": ({}, {"topics": {"reply_to": ["mine"]}}, saxpy(0) | {"reply_to": "mine"},
                                "reply_to_forbidden", "ok"),
            "limits.message_bytes": ({}, {"limits": {"message_bytes": "1KiB"}}, saxpy(0, 1000), "ok", "too_large"),
            "limits.buffers_per_job": ({}, {"limits": {"buffers_per_job": 1}}, saxpy(0), "ok", "too_large"),
            "limits.steps_per_job": ({}, {"limits": {"steps_per_job": 1}}, two_steps, "ok", "too_large"),
            "limits.launches_per_job": ({}, {"limits": {"launches_per_job": 1}}, two_steps, "ok", "too_large"),
            "limits.instances_per_job": ({}, {"limits": {"instances_per_job": 1}}, two_instances, "ok", "too_large"),
            "limits.array_bytes": ({}, {"limits": {"array_bytes": "1KiB"}}, two_instances, "ok", "too_large"),
            "limits.result_bytes": ({}, {"limits": {"result_bytes": "2KiB"}}, saxpy(0, 1000), "ok",
                                    "result_too_large"),
            "limits.timeout_min_ms": ({}, {"limits": {"timeout_min_ms": 1}}, saxpy(0) | {"timeout_ms": 99},
                                      "bad_job", "ok"),
            "limits.long_job_ms": ({}, {"limits": {"long_job_ms": "1s"}}, saxpy(0) | {"repeat": 1, "time_ms": 2000}, "ok", "too_large"),
            "limits.timeout_max_ms": ({}, {"limits": {"timeout_max_ms": "1h"}}, saxpy(0) | {"timeout_ms": 600_000},
                                      "too_large", "ok"),
        }
        by_themselves = {"log.level", "limits.timeout_ms", "limits.bytes_in_flight"}  # below
        self.assertEqual(self.reloading_settings(), set(table) | by_themselves)

        def outcome(job):
            result = self.ask(job)
            if result["status"] == "ok":
                return "ok"
            error = result["error"]
            return error["attempts"] if error["code"] == "unknown_program" and "attempts" in error else error["code"]
        for setting, (before, after, job, expected_before, expected_after) in table.items():
            with self.subTest(setting):
                self.write_config(**merged({"retry": {"max_attempts": 1}}, before))
                self.start("--no-supervisor")
                if expected_before is None:
                    self.send(job)
                    self.ask(saxpy(1))  # the one before it has been taken, under the configuration that was read first
                else:
                    self.assertEqual(outcome(job), expected_before)
                self.write_config(**merged({"retry": {"max_attempts": 1}}, after))
                self.reload()
                self.assertEqual(outcome(job | {"id": "after"}), expected_after)
                self.assertEqual(job["id"] in self.answers(), expected_before is not None)
                self.process.kill()
                self.process.wait()

    def test_the_log_level_reloads(self):
        for options in ([], ["--no-supervisor"]):
            self.write_config()
            self.start(*options)
            self.ask(saxpy(0))
            self.assertEqual(self.count_lines(" debug "), 0)
            self.write_config(log={"level": "debug"})
            self.reload()
            self.ask(saxpy(1))
            self.wait_for_line(" debug ")
            self.end()

    def test_the_time_that_a_job_may_take_reloads(self):
        endless = {"cpu_driver": {"faults": "cuLaunchKernel:hang@1"}}
        self.write_config(**endless)
        self.start()
        self.wait_for_line(" ready: ")
        self.write_config(limits={"timeout_ms": "200ms"}, **endless)
        self.reload()
        self.send(saxpy(0), saxpy(1))
        self.wait_until(lambda: self.process.poll() is not None or self.count_lines("killing the executor"), "its end")
        self.assertRegex(self.log.read_text(), "longer than the 200 ms that its jobs may take")

    def test_a_worker_that_is_full_takes_more_once_it_may(self):
        waiting = {"retry": {"base_ms": "1h", "max_ms": "1h"}}
        self.write_config(limits={"message_bytes": "1KiB", "bytes_in_flight": "1KiB"}, **waiting)
        self.start()
        self.send(unknown(0))
        self.wait_for_line(" ready: ")
        self.send(saxpy(1))
        self.write_config(limits={"message_bytes": "1KiB"}, **waiting)
        self.reload()
        self.assertTrue(is_saxpy(self.wait_for(saxpy(1)), 1))

    def test_what_cannot_change_is_named_in_one_line(self):
        for options in ([], ["--no-supervisor"]):
            self.write_config()
            self.start(*options)
            self.ask(saxpy(0))
            self.write_config(lanes=3, kafka={"group": "other", "consumer": {"debug": "none"}})
            self.reload()
            self.assertEqual(self.count_lines("take effect at the next start"), 1)
            self.assertEqual(self.count_lines(
                "lanes and 2 more settings have changed; they take effect at the next start"), 1)
            self.write_config(lanes=3)
            self.reload()
            self.assertEqual(self.count_lines("lanes has changed; it takes effect at the next start"), 1)
            self.write_config()
            self.reload()
            self.assertEqual(self.count_lines("at the next start"), 2)
            self.assertTrue(is_saxpy(self.ask(saxpy(1)), 1))
            self.end()

    def test_a_driver_from_the_command_line_is_no_change(self):
        for options in ([], ["--no-supervisor"]):
            self.write_config(driver="cuda")
            self.start("--driver", "cpu", *options)
            self.ask(saxpy(0))
            self.reload()
            self.assertEqual(self.count_lines("at the next start"), 0)
            self.end()

    # what is wrong

    def test_what_is_broken_changes_nothing_and_is_one_line_with_cause_and_fix(self):
        def break_yaml():
            self.config.write_text("driver: cpu\nlanes: [")

        def empty_the_file():
            self.config.write_text("")

        def write_half_a_line():
            self.config.write_text("driver: cpu\nlanes: 1")  # of 16

        def change_driver():
            self.write_config(driver="cuda")

        def change_broker():
            self.write_config(broker="embedded")

        def put_a_pipe_there():
            self.config.unlink()
            os.mkfifo(self.config)

        def put_a_pipe_among_the_programs():
            self.config.unlink()  # which is a pipe now
            self.write_config()
            (self.programs / "answer/program.yaml").unlink()
            os.mkfifo(self.programs / "answer/program.yaml")

        def put_a_pipe_for_an_image():
            self.write_config()
            (self.programs / "answer/answer.so").unlink()
            os.mkfifo(self.programs / "answer/answer.so")

        def break_setting():
            self.write_config(retry={"max_attempts": 0})

        def break_key():
            self.write_config(limits={"massage_bytes": 5000})

        def break_combination():
            self.write_config(retry={"base_ms": "1h"})

        def break_program():
            self.write_config()
            (self.programs / "answer/answer.so").write_text("")

        def need_newer_device():
            self.write_config()
            shutil.rmtree(self.programs / "saxpy", ignore_errors=True)
            manifest = self.programs / "answer/program.yaml"
            program = json.loads(manifest.read_text())
            program["entries"][0]["requires"] = {"compute_capability": 9.9}
            manifest.write_text(json.dumps(program))

        def remove_programs():
            self.write_config(programs={"dir": str(self.folder / "nowhere")})

        def remove_config():
            self.config.unlink()
        address = reserve_address(self)

        def readiness():
            return ask(address, "/readyz")[1]
        for options in ([], ["--no-supervisor"]):
            self.install_answer(1)
            self.write_config(http={"listen": address})
            self.start(*options)
            self.assertEqual(answered_by(self.ask(answer(0))), 1)
            for number, damage in enumerate((break_yaml, empty_the_file, write_half_a_line, change_driver, change_broker,
                                             put_a_pipe_there, put_a_pipe_among_the_programs, put_a_pipe_for_an_image,
                                             break_setting, break_key, break_combination, break_program,
                                             need_newer_device, remove_programs, remove_config), 1):
                with self.subTest(damage.__name__):
                    damage()
                    self.hang_up_and_wait_for("not reloaded, nothing has changed: ")
                    self.assertEqual(answered_by(self.ask(answer(number))), 1)
                    self.assertEqual(self.count_lines(" error "), number)
                    if not options:
                        self.wait_until(readiness, "the page says so", is_met=lambda text: text.startswith(
                            "ready\nreload: the last one was refused"))
                    self.install_answer(1)
            self.assertEqual(self.count_lines(" reloaded: "), 0)
            self.assertRegex(self.log.read_text(), "massage_bytes.*; did you mean 'message_bytes'")
            self.install_answer(2)
            self.write_config()
            self.reload()
            self.assertEqual(answered_by(self.ask(answer(99))), 2)
            if not options:
                self.wait_until(readiness, "nothing that was refused", is_met=lambda text: text == "ready\n")
            self.end()

    # many

    def test_a_storm_of_reloads_leaves_no_growth_and_loses_no_job(self):
        self.install_answer(1)
        self.write_config()
        self.start("--no-supervisor")
        self.wait_for_line(" ready: ")
        bytes_resident = []
        for number in range(200):
            self.install_answer(1 + number % 2)
            self.write_config(retry={"max_attempts": 1 + number % 9})
            self.reload()
            self.assertEqual(answered_by(self.ask(answer(number))), 1 + number % 2)
            bytes_resident.append(int(status_of(self.process.pid)["VmRSS"].split()[0]) * 1024)
        # Sanitizers keep what was freed for a while.
        self.assertLess(bytes_resident[-1] - bytes_resident[99], 16 << 20)
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        self.reload()
        self.assertLessEqual(len(os.listdir(f"/proc/{self.process.pid}/fd")), descriptors)
        self.end()

    def test_an_executor_that_dies_after_a_reload_starts_with_the_new_configuration(self):
        jobs, gate = self.folder / "jobs", Gate(self)
        jobs.write_bytes(b"".join(msgpack.packb(paced(number)) for number in range(2000)))
        shutil.copytree(BUILD / "tests/flow/ledger", self.programs / "ledger")
        one_by_one = {"batch": {"jobs": 1}, "limits": {"jobs_in_flight": 64}}
        self.write_config(**one_by_one)
        self.start(jobs=jobs)
        self.wait_for_line(", 2 lanes, ")
        self.write_config(**one_by_one | {"lanes": 3})
        self.reload()
        os.kill(executor_of(self.process.pid), signal.SIGKILL)
        self.wait_for_line(", 3 lanes, ")
        gate.open()
        self.end()
        answers = self.answers()
        self.assertTrue(all(is_right(answers[f"job-{number}"], number) for number in range(2000)))

    def test_a_configuration_that_was_a_pipe_is_kept_and_programs_are_read_again(self):
        read_end, write_end = os.pipe()
        os.write(write_end, json.dumps({"driver": "cpu", "programs": {"dir": str(self.programs)}}).encode())
        os.close(write_end)
        self.install_answer(1)
        self.config = f"/dev/fd/{read_end}"
        with open(self.folder / "log", "wb") as output:
            self.log = self.folder / "log"
            self.process = subprocess.Popen(
                [BINARY, "run", "--config", self.config, "--jobs", "-", "--results", self.results],
                stdin=subprocess.PIPE, stdout=output, stderr=output, pass_fds=[read_end])
        os.close(read_end)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        self.assertEqual(answered_by(self.ask(answer(0))), 1)
        self.install_answer(2)
        self.reload()
        self.assertEqual(answered_by(self.ask(answer(1))), 2)
        self.end()


if __name__ == "__main__":
    unittest.main(verbosity=2)
