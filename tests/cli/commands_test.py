"""The commands that start nothing: check, config, programs, version, and the help of all.
usage: commands_test.py BINARY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = yaml = None

BINARY = sys.argv.pop(1)

MANIFEST = """\
name: scale
description: y = a*x
entries:
  - name: scale
    args:
      - {name: a, value: f32}
      - {name: x, buffer: in, type: FP32}
    block: [32, 4]
    requires: {compute_capability: 7.0}
images:
  - {kind: ptx, file: scale.ptx}
"""
PTX = ".version 6.0\n.entry scale(.param .f32 a, .param .u64 x)\n{}\n"


def run(*arguments, stdin="", **environment):
    return subprocess.run([BINARY, *arguments], input=stdin, capture_output=True, text=True, timeout=60,
                          env=os.environ | environment)


def json_or_text(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


class CommandsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = self.folder / "programs"
        (self.programs / "scale").mkdir(parents=True)
        (self.programs / "scale" / "program.yaml").write_text(MANIFEST)
        (self.programs / "scale" / "scale.ptx").write_text(PTX)

    def write(self, text):
        path = self.folder / "worker.yaml"
        path.write_text(text)
        return str(path)

    def test_help_lists_the_commands_and_exit_codes(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for text in ("check", "config", "programs", "version", "exit codes:", "examples:"):
            self.assertIn(text, done.stdout)

    def test_every_listed_command_has_help(self):
        lines = run("--help").stdout.split("commands", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
        for name in (line.split()[0] for line in lines):
            done = run(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertTrue(done.stdout.startswith(f"usage: gpu-worker {name}"), name)
            self.assertIn("exit codes:", done.stdout)

    def test_devices_are_lines_of_six_fields_or_of_json_with_node_and_cpus(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write('{"driver": "cpu", "cpu_driver": {"devices": 2}}')
            config.flush()
            lines = run("devices", "--config", config.name).stdout.splitlines()
            objects = list(map(json.loads, run("devices", "--config", config.name, "--json").stdout.splitlines()))
        self.assertEqual([[str(number), f"GPU-00000000-0000-0000-0000-00000000000{number}", "-", f"CPU driver device {number}",
                           "-", "-"] for number in range(2)], [line.split("\t") for line in lines])
        self.assertEqual([{"device": number, "uuid": f"GPU-00000000-0000-0000-0000-00000000000{number}",
                           "name": f"CPU driver device {number}", "fault": None, "pci": f"ffff:0{number}:00.0",
                           "numa_node": None, "cpus": None} for number in range(2)], objects)

    def test_config_show_prints_json_that_is_a_configuration_too(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write("driver: cpu\ndevices: [0]\nkafka: {group: 'a$$b\"', consumer: {client.rack: x}}\n")
            config.flush()
            shown = run("config", "show", "--json", "--config", config.name)
            plain = run("config", "show", "--config", config.name)
        settings = json.loads(shown.stdout)
        self.assertEqual((settings["driver"], settings["lanes"], settings["executors"]["spare"]), ("cpu", 8, False))
        self.assertEqual((settings["lane_slab_bytes"], settings["devices"]), ("4MiB", ["0"]))
        self.assertEqual(json.loads(run("config", "show", "--json").stdout)["devices"], "all")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            config.write(shown.stdout)
            config.flush()
            self.assertEqual(run("config", "show", "--config", config.name).stdout, plain.stdout)

    def test_a_mistyped_command_is_answered_with_the_nearest(self):
        done = run("chekc")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "gpu-worker: unknown command 'chekc'; did you mean 'check'?\n")
        self.assertEqual(run().returncode, 2)

    def test_wrong_arguments_exit_with_2_and_name_the_help(self):
        for arguments in (["check"], ["check", "--config"], ["check", "--confi"], ["config"], ["config", "x"],
                          ["config", "show", "y"], ["config", "schema", "--config", "f"],
                          ["config", "table", "--json"], ["demo", "--json"], ["programs", "x"],
                          ["version", "x"], ["check", "--config", "f", "--unknown"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(f"see gpu-worker {arguments[0]} --help", done.stderr)

    def test_wrong_arguments_are_named_with_the_nearest_right_one(self):
        for arguments, said in ((["tail", "--confg", "f"], "there is no option '--confg'; did you mean '--config'?"),
                                (["tail", "--confg=f"], "there is no option '--confg=f'; did you mean '--config'?"),
                                (["tail", "--zzzzzzzz"], "there is no option '--zzzzzzzz'"),
                                (["tail", "-x"], "there is no option '-x'"),
                                (["tail", "--count", "abc"], "--count takes a whole number, not 'abc'"),
                                (["tail", "--count"], "--count needs a value: N"),
                                (["tail", "--from-beginning=1"], "--from-beginning takes no value"),
                                (["tail", "word"], "'word' is too much"),
                                (["check", __file__], f"'{__file__}' is too much; did you mean '--config {__file__}'?"),
                                (["submit"], "a word is missing: JOB.yaml"),
                                (["tail", "--count", "0"], "--count is at least 1"),
                                (["tail", "--code", "bad_argumnt"],
                                 "no error has the code 'bad_argumnt'; did you mean 'bad_argument'?"),
                                (["replay", "--code", "io", "--code", "zzzzzzzz"], "no error has the code 'zzzzzzzz'"),
                                (["submit", "--encode", "--local", "job.yaml"],
                                 "--encode runs nothing: --topic, --local, --json and --out mean nothing then"),
                                (["config", "shwo"], "'shwo' is none of defaults|show|schema|table; did you mean 'show'?"),
                                (["config"], "a word is missing: defaults|show|schema|table"),
                                (["run", "--jobs", "f"], "--results FILE is missing; it goes with --jobs"),
                                (["run", "--results", "f"], "--results goes only with --jobs")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(done.stderr, f"gpu-worker {arguments[0]}: {said}; see gpu-worker {arguments[0]} --help\n")

    def test_help_is_asked_for_in_several_ways(self):
        self.assertEqual(run("-h").stdout, run("--help").stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "run").stdout, run("run", "--help").stdout)
        self.assertEqual(run("run", "-h").stdout, run("run", "--help").stdout)
        done = run("help", "rnu")
        self.assertEqual((done.returncode, done.stderr), (2, "gpu-worker: unknown command 'rnu'; did you mean 'run'?\n"))
        self.assertEqual(run("-V").stdout, run("version").stdout)

    def test_version_names_the_commit_and_the_features(self):
        done = run("version")
        lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(list(lines), ["gpu-worker", "commit", "build", "compiler", "drivers", "cuda.h", "librdkafka",
                                       "nvtx"])
        self.assertRegex(lines["gpu-worker"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(lines["commit"], r"^([0-9a-f]{12}(\+changes)?|[\w.+-]+)$")
        self.assertRegex(lines["cuda.h"], r"^\d+\.\d$")
        self.assertRegex(lines["librdkafka"], r"^\S+, built against \d+\.\d+\.\d+$")
        self.assertEqual(run("--version").stdout, done.stdout)
        told = json.loads(run("version", "--json").stdout)
        self.assertEqual((told["version"], told["commit"], told["cuda_h"]),
                         (lines["gpu-worker"], lines["commit"], lines["cuda.h"]))
        self.assertEqual(f"{told['librdkafka']['loaded']}, built against {told['librdkafka']['built']}", lines["librdkafka"])
        self.assertEqual(told["drivers"], lines["drivers"].split())

    def test_what_resume_has_to_show_is_json_lines(self):
        config = self.write(f"state: {{dir: {self.folder}}}\n")
        none = run("resume", "--json", "--config", config)
        self.assertEqual((none.returncode, none.stdout), (1, ""))
        self.assertIn("no executor has a state file in", none.stderr)

    def test_check_of_a_good_file_is_one_line(self):
        path = self.write("lanes: 2\n")
        done = run("check", "--config", path, "--programs", str(self.programs))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"ok: {path}, 1 program\n")
        done = run("check", "--config", path, "--programs", str(self.programs), "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)),
                         (0, {"ok": True, "config": path, "programs": 1, "problems": []}))

    def test_check_reports_every_problem_of_file_and_programs(self):
        path = self.write("drivr: cpu\nlanes: 0\nkafka:\n  group: ${UNSET_GROUP}\n  producer: {acks: 1}\n")
        (self.programs / "scale" / "scale.ptx").unlink()
        done = run("check", "--config", path, "--programs", str(self.programs))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertEqual(sorted(line.split(": ")[1] for line in done.stderr.splitlines()), sorted([
            f"{path}:1:1", f"{path}:2:8", f"{path}:4:10", f"{path}:5:14",
            f"{self.programs}/scale/program.yaml:11:23"]))
        self.assertIn(f"gpu-worker check: {path}:1:1: unknown key 'drivr'; did you mean 'driver'?\n", done.stderr)
        as_json = run("check", "--config", path, "--programs", str(self.programs), "--json")
        self.assertEqual((as_json.returncode, as_json.stderr), (3, ""))
        told = json.loads(as_json.stdout)
        self.assertFalse(told["ok"])
        self.assertEqual({f"{one['where']}: {one['what']}" + (f"; {one['fix']}" if one["fix"] else "") for one in told["problems"]},
                         {line.removeprefix("gpu-worker check: ") for line in done.stderr.splitlines()})

    def test_check_looks_for_programs_where_the_file_says(self):
        path = self.write(f"programs: {{dir: {self.programs}}}\n")
        self.assertIn("1 program\n", run("check", "--config", path).stdout)

    def test_check_reads_standard_input(self):
        done = run("check", "--config", "-", "--programs", str(self.programs), stdin="lanes: x\n")
        self.assertEqual(done.returncode, 3)
        self.assertIn("standard input:1:8: lanes cannot be 'x'", done.stderr)

    def test_show_expands_variables_and_masks_secrets(self):
        path = self.write("kafka:\n  group: ${GROUP}\n  consumer: {sasl.password: '${SECRET}'}\n")
        done = run("config", "show", "--config", path, GROUP="blue", SECRET="hunter2")
        self.assertEqual(done.returncode, 0)
        self.assertIn('group: "blue"', done.stdout)
        self.assertIn('"sasl.password": "***"', done.stdout)
        self.assertNotIn("hunter2", done.stdout + done.stderr)

    def test_show_of_a_bad_file_exits_with_3(self):
        done = run("config", "show", "--config", str(self.folder / "absent.yaml"))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("No such file", done.stderr)

    def test_defaults_change_nothing(self):
        path = self.write(run("config", "defaults").stdout)
        self.assertEqual(run("config", "show", "--config", path).stdout, run("config", "show").stdout)

    def test_the_table_is_markdown_with_a_row_for_each_setting(self):
        lines = run("config", "table").stdout.splitlines()
        self.assertEqual(lines[0], "| key | type | default | meaning |")
        self.assertTrue(all(line.count("|") == 5 for line in lines), lines)

    def test_the_schema_has_every_setting_with_its_default(self):
        properties = json.loads(run("config", "schema").stdout)["properties"]
        section = None
        for line in run("config", "show").stdout.splitlines():
            key, value = line.strip().split(":", 1)
            if value == "":
                section = properties[key]["properties"]
                continue
            setting = (section if line.startswith(" ") else properties).pop(key)
            self.assertEqual(str(setting["default"]), str(json_or_text(value.strip())), key)
        self.assertFalse([key for key in properties if properties[key].get("properties") != {}])

    @unittest.skipUnless(jsonschema, "needs PyYAML and jsonschema")
    def test_the_schema_takes_what_the_loader_takes(self):
        schema = json.loads(run("config", "schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        good = ["", run("config", "defaults").stdout, run("config", "show").stdout, "lanes: ${N}\nlog:\n",
                "kafka: {consumer: {debug: all, linger.ms: 5, sasl.password: {file: x}}}\n"]
        bad = ["lane: 1", "lanes: 0", "lanes: many", "driver: cud", "drain_timeout_ms: 3d", "topics: {jobs: []}",
               "limits: {job_bytes: 3MB}", "kafka: {producer: {acks: 1}}", "log: {levle: info}"]
        for text in good:
            validator.validate(yaml.safe_load(text))
        for text in bad:
            self.assertFalse(validator.is_valid(yaml.safe_load(text)), text)
            self.assertEqual(run("config", "show", "--config", self.write(text)).returncode, 3, text)

    def test_programs_lists_entries_arguments_and_images(self):
        done = run("programs", "--dir", str(self.programs))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        words = " ".join(done.stdout.split())
        self.assertIn("scale: y = a*x entry scale: block [32, 4, 1], shared_bytes 0, compute capability 7.0", words)
        self.assertIn(f"a value f32 x in FP32 image ptx: scale.ptx, {len(PTX)} bytes, sha256:", words)

    def test_programs_tells_how_an_entry_runs_and_what_its_arguments_are(self):
        args = "args: [{name: w, value: words, count: 4}, {name: y, buffer: out, access: stream}]"
        (self.programs / "scale" / "program.yaml").write_text(
            f"name: scale\nentries:\n- {{name: all, {args}, requires: {{cooperative: true}}, phases: [half, half]}}\n"
            f"- {{name: half, {args}}}\nimages: [{{kind: ptx, file: scale.ptx}}]\n")
        params = "(.param .align 4 .b8 w[16], .param .u64 y) {}"
        (self.programs / "scale" / "scale.ptx").write_text(f".entry all{params} .entry half{params}")
        words = " ".join(run("programs", "--dir", str(self.programs)).stdout.split())
        self.assertIn("entry all: block [256, 1, 1], shared_bytes 0, cooperative, or in phases: half, half", words)
        self.assertIn("w value words y out any, access stream entry half", words)

    def test_programs_tells_the_bounds_of_numbers_buffers_and_shapes(self):
        (self.programs / "scale" / "program.yaml").write_text(
            "name: scale\nentries:\n- name: scale\n  args:\n"
            "  - {name: a, value: f32, between: [-0.5, 2], at_most: [{buffer: x, times: 2, plus: 1}]}\n"
            "  - {name: x, buffer: in, type: FP32, at_least: 3}\n"
            "  blocks: {at_most: [x]}\nimages: [{kind: ptx, file: scale.ptx}]\n")
        words = " ".join(run("programs", "--dir", str(self.programs)).stdout.split())
        self.assertIn("a value f32, -0.5 to 2 x in FP32 needs a * 2 + 1 <= x needs 3 <= x needs blocks <= x image", words)

    def test_programs_as_json_has_what_a_client_checks(self):
        (self.programs / "scale" / "program.yaml").write_text(
            "name: scale\ndescription: 'says \"x\"'\nentries:\n- name: scale\n  args:\n"
            "  - {name: a, value: f32, between: [-0.1, .inf], at_most: [{buffer: x, times: threads, plus: 1}]}\n"
            "  - {name: x, buffer: in, type: FP32, at_least: 3}\n"
            "  blocks: {at_most: [shared_bytes]}\nimages: [{kind: ptx, file: scale.ptx}]\n")
        done = run("programs", "--json", "--dir", str(self.programs))
        self.assertEqual(done.returncode, 0, done.stderr)
        (program,) = json.loads(done.stdout)
        self.assertEqual((program["name"], program["description"]), ("scale", 'says "x"'))
        (entry,) = program["entries"]
        self.assertEqual((entry["block"], entry["shared_bytes"], entry["cooperative"], entry["batched"]),
                         ([256, 1, 1], 0, False, False))
        self.assertEqual(entry["args"], [
            {"name": "a", "role": "value", "type": "f32", "between": [-0.1, None]},
            {"name": "x", "role": "in", "type": "FP32"}])
        self.assertCountEqual(entry["bounds"], [
            {"what": {"arg": "a"}, "times": {"launch": "threads"}, "plus": 1, "at_most": {"arg": "x"}},
            {"what": 3, "times": 1, "plus": 0, "at_most": {"arg": "x"}},
            {"what": {"launch": "blocks"}, "times": 1, "plus": 0, "at_most": {"launch": "shared_bytes"}}])
        (image,) = program["images"]
        self.assertEqual((image["kind"], image["file"], image["bytes"]), ("ptx", "scale.ptx", len(PTX)))

    def test_a_driver_for_which_a_program_has_no_image_is_said(self):
        self.assertTrue(run("programs", "list", "--dir", str(self.programs)).stdout.endswith("  no image for driver: cpu\n"))
        shipped = run("programs").stdout
        self.assertIn("image cpu: saxpy.so", shipped)
        self.assertNotIn("no image", shipped)

    def test_a_kernel_with_a_mangled_name_has_a_name_of_its_own(self):
        folder = self.programs / "scale"
        mangled = "_Z5scalefPf$1.x"
        (folder / "scale.ptx").write_text(PTX.replace("scale", mangled))
        (folder / "program.yaml").write_text(MANIFEST.replace("  - name: scale\n", f"  - name: scale\n    symbol: {mangled}\n"))
        done = run("programs", "--dir", str(self.programs))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"entry scale: block [32, 4, 1], shared_bytes 0, compute capability 7.0, symbol {mangled}\n", done.stdout)
        (program,) = json.loads(run("programs", "--dir", str(self.programs), "--json").stdout)
        self.assertEqual((program["entries"][0]["name"], program["entries"][0]["symbol"]), ("scale", mangled))
        (folder / "program.yaml").write_text(MANIFEST.replace("  - name: scale\n", "  - name: scale\n    symbol: other\n"))
        done = run("programs", "--dir", str(self.programs))
        self.assertEqual(done.returncode, 3)
        self.assertIn("program.yaml:5:13: scale.ptx has no kernel 'other'", done.stderr)

    def test_programs_prints_the_good_and_reports_the_bad(self):
        (self.programs / "other").mkdir()
        (self.programs / "other" / "program.yaml").write_text("name: other\n")
        done = run("programs", "--dir", str(self.programs))
        self.assertEqual(done.returncode, 3)
        self.assertIn("scale", done.stdout)
        self.assertIn("other/program.yaml:1:1: 'entries' is missing", done.stderr)

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, "config", "defaults"], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "gpu-worker config: standard output: No space left on device\n"))
            done = subprocess.run([BINARY, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "gpu-worker help: standard output: No space left on device\n"))


unittest.main()
