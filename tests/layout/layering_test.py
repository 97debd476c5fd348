#!/usr/bin/env python3
"""The layering check finds what it is there to find."""

import pathlib
import tempfile
import unittest

import layering

ROOT = pathlib.Path(__file__).parents[2]


def violations_of(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / "worker" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return layering.violations(root)


class Layering(unittest.TestCase):
    def test_a_folder_may_include_itself_and_what_stands_before_it(self):
        self.assertEqual([], violations_of({"decode/decode.c": '#include "decode/job.h"\n#include "base/slice.h"\n'}))

    def test_an_earlier_folder_must_not_include_a_later_one(self):
        found = violations_of({"decode/decode.c": '#include "base/slice.h"\n\n#  include "publish/publish.h"\n'})
        self.assertEqual(1, len(found))
        self.assertTrue(found[0].startswith("worker/decode/decode.c:3: decode may include"), found)

    def test_a_header_allowed_by_name_does_not_open_its_folder(self):
        self.assertEqual(1, len(violations_of({"decode/job.h": '#include "broker/source.h"\n'})))

    def test_an_unknown_folder_is_refused(self):
        self.assertEqual(1, len(violations_of({"extra/x.c": '#include "base/slice.h"\n'})))

    def test_waits_and_times_are_by_the_clocks_of_base(self):
        self.assertEqual([], violations_of({"base/clock.h": "clock_gettime(CLOCK_REALTIME, &t);\n"}))
        for line in ("clock_gettime(CLOCK_REALTIME, &t);", "pthread_cond_timedwait(&c, &l, &t);", "now = time(NULL);"):
            self.assertEqual(1, len(violations_of({"pipeline/flow.c": line + "\n"})), line)

    def test_threads_are_those_of_crews(self):
        self.assertEqual([], violations_of({"base/crew.c": "pthread_create(&thread, NULL, run, NULL);\n"}))
        for line in ("pthread_create(&thread, NULL, run, NULL);", "pthread_join(thread, NULL);"):
            self.assertEqual(1, len(violations_of({"pipeline/flow.c": line + "\n"})), line)

    def test_who_decides_what_becomes_of_a_failure_logs_it_and_nobody_else(self):
        line = 'log_error(LOG_WARN, "an output was not stored", &err);\n'
        self.assertEqual([], violations_of({"pipeline/flow.c": line, "metrics/reporter.c": line}))
        for name in ("broker/consumer.c", "batch/lane.c", "state/life.c"):
            self.assertEqual(1, len(violations_of({name: line})), name)

    def test_a_library_stays_in_its_place(self):
        self.assertEqual([], violations_of({"gpu/driver.h": "#include <cuda.h>\n"}))
        self.assertEqual(1, len(violations_of({"pipeline/executor.c": "#include <cuda.h>\n"})))
        self.assertEqual(1, len(violations_of({"pipeline/executor.c": "#include <librdkafka/rdkafka_mock.h>\n"})))

    def test_plan_must_not_reach_cuda_through_a_header_it_may_include(self):
        files = {"gpu/limits.h": '#include "gpu/driver.h"\n', "gpu/driver.h": "#include <cuda.h>\n"}
        self.assertEqual([], violations_of(files))
        found = violations_of(files | {"plan/plan.c": '#include "gpu/limits.h"\n'})
        self.assertEqual(1, len(found))
        self.assertIn("plan/plan.c -> gpu/limits.h -> gpu/driver.h", found[0])

    def test_raw_allocation_stands_in_one_place(self):
        call = "code = GPU_TRY(gpu, memory_alloc(&block, bytes), err);\n"
        self.assertEqual([], violations_of({"gpu/memory.c": call, "cpu_driver/block.c": call}))
        found = violations_of({"batch/batch.c": call})
        self.assertEqual(["worker/batch/batch.c:1: memory_alloc() is called only in gpu/memory.c"], found)

    def test_a_header_alone_may_be_included_by_what_it_does_not_include(self):
        files = {"plan/a.h": "", "plan/a.c": '#include "plan/a.h"\n#include "plan/b.h"\n', "plan/b.h": "",
                 "plan/b.c": '#include "plan/b.h"\n#include "plan/c.h"\n', "plan/c.h": ""}
        self.assertEqual([], violations_of(files))

    def test_two_modules_must_not_include_each_other(self):
        files = {"plan/a.h": "", "plan/a.c": '#include "plan/a.h"\n#include "plan/b.h"\n',
                 "plan/b.h": '#include "plan/a.h"\n', "plan/c.c": '#include "plan/a.h"\n'}
        found = violations_of(files)
        self.assertEqual(["worker/plan/a.c:2: a cycle of includes: plan/a -> plan/b -> plan/a",
                          "worker/plan/b.h:1: a cycle of includes: plan/b -> plan/a -> plan/b"], found)

    def test_modules_of_a_python_package_that_import_each_other_are_found(self):
        found = violations_of({"plan/a.h": "", "../scripts/python/client/a.py": "from .b import B\n",
                               "../scripts/python/client/b.py": "if TYPE_CHECKING:\n    from . import a\n"})
        self.assertEqual(["scripts/python/client/a.py:1: a cycle of includes: client.a -> client.b -> client.a",
                          "scripts/python/client/b.py:2: a cycle of includes: client.b -> client.a -> client.b"], found)

    def test_a_cycle_over_three_modules_is_found(self):
        files = {"plan/a.h": '#include "plan/b.h"\n', "plan/b.h": "", "plan/b.c": '#include "plan/c.h"\n',
                 "plan/c.h": "", "plan/c.c": '\n#include "plan/a.h"\n'}
        found = violations_of(files)
        self.assertEqual(3, len(found))
        self.assertIn("worker/plan/c.c:2: a cycle of includes: plan/c -> plan/a -> plan/b -> plan/c", found)


class Documentation(unittest.TestCase):
    def test_contributing_quotes_the_table(self):
        self.assertIn(layering.table(), (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
