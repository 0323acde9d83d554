#!/usr/bin/env python3
"""Tests of the gauge itself: it says so when it is asked for what it cannot compare, and each row is in one run."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import suite        # noqa: E402
import table        # noqa: E402


def run(*arguments):
    """(exit code, output) of the runner. No server: it must not get as far as starting one."""
    done = subprocess.run([os.path.join(HERE, "run"), "--server", "/nowhere/keydb-server", *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
    return done.returncode, done.stdout


def table_of(*rows):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        file.write(table.HEAD + "".join("\t".join(row) + "\n" for row in rows))
        file.flush()
        return table.Table(file.name)


def messages(of, units=(("unit/a", "plain"),), fast=()):
    return [message for _, message in table.breaches(of, list(units), list(fast))]


ROW = ("unit/a", "plain", "one", "pass", "", "")


class Read(unittest.TestCase):
    def test_names_that_come_twice(self):
        verdicts = suite.Verdicts()
        verdicts.read("[ok]: a (1 ms)\n[err]: a in tests/unit/x.tcl\nwhy\n")
        self.assertEqual(verdicts.tests, {"a": ("pass", ""), "a ~2": ("fail", "why")})

    def test_names_with_random_numbers(self):
        verdicts = suite.Verdicts()
        verdicts.read("[ok]: PSYNC2: Set #1 to replicate from #2 (1 ms)\n"
                      "[err]: PSYNC2: Set #0 to replicate from #3 in tests/integration/psync2.tcl\nwhy\n"
                      "[ok]: PSYNC2: Set #1 to replicate from #2 (1 ms)\n[ok]: PSYNC2 #3899 regression: setup (2 ms)\n")
        self.assertEqual(verdicts.tests, {"PSYNC2: Set #N to replicate from #N": ("fail", "why"),
                                          "PSYNC2 #3899 regression: setup": ("pass", "")})


class Asked(unittest.TestCase):
    def refused(self, arguments, *said):
        code, output = run(*arguments)
        self.assertEqual(code, 1, output)
        for text in said:
            self.assertIn(text, output)
        self.assertIn("\n0 passed, %d failed\n" % len(said), output)

    def test_a_unit_that_does_not_exist(self):
        self.refused(["--unit", "nosuch"], "--unit nosuch: ")

    def test_beside_one_that_does(self):
        self.refused(["--unit", "multi", "--unit", "nosuch", "--unit", "integration/nosuch"],
                     "--unit nosuch: ", "--unit integration/nosuch: ")

    def test_a_unit_of_the_suite_that_is_not_run(self):
        self.refused(["--unit", "printver"], "--unit printver: ")

    def test_a_unit_that_is_not_run_over_tls(self):
        self.refused(["--unit", "multi", "--mode", "tls"], "--unit multi: no such unit (tls) ")

    def test_names_with_and_without_their_folder(self):
        self.assertEqual(table.choose(["auth", "unit/multi"], "plain", table.Table(), False),
                         ([("unit/auth", "plain"), ("unit/multi", "plain")], []))
        self.assertEqual(table.choose(["auth"], None, table.Table(), False)[0],
                         [("unit/auth", "plain"), ("unit/auth", "tls")])

    def test_a_unit_without_rows(self):
        keys, said = table.choose(["multi"], None, table_of(ROW), False)
        self.assertEqual((keys, len(said)), ([("unit/multi", "plain")], 1))
        self.assertIn("--unit multi: there are no rows", said[0])
        self.assertEqual(table.choose(["multi"], None, table_of(ROW), True), (keys, []))


class Rows(unittest.TestCase):
    def test_each_is_in_one_run(self):
        self.assertEqual(table.breaches(table.Table()), [])

    def test_in_one_run(self):
        self.assertEqual(messages(table_of(ROW)), [])

    def test_in_no_run(self):
        lost = ("unit/b", "plain", "one", "pass", "", "")
        self.assertEqual(messages(table_of(ROW, lost)), ["unit/b (plain) has 1 rows, but is in no run"])
        over_tls = ("unit/a", "tls", "one", "pass", "", "")
        self.assertEqual(messages(table_of(ROW, over_tls)), ["unit/a (tls) has 1 rows, but is in no run"])

    def test_twice(self):
        self.assertEqual(messages(table_of(ROW, ROW)), ["unit/a (plain) has two rows for: one"])
        self.assertEqual(messages(table_of(ROW), [("unit/a", "plain")] * 2), ["unit/a (plain) is run twice"])
        self.assertEqual(messages(table_of(ROW), fast=[("unit/a", "plain")] * 2),
                         ["unit/a (plain) is in the fast part twice"])

    def test_the_fast_part_is_a_part(self):
        self.assertEqual(messages(table_of(ROW), fast=[("unit/b", "plain")]),
                         ["unit/b (plain) is in the fast part, but not in the whole run"])

    def test_a_run_without_rows(self):
        self.assertEqual(messages(table_of(ROW), [("unit/a", "plain"), ("unit/b", "plain")]),
                         ["unit/b (plain) is run, but has no rows"])

    def test_without_a_reason(self):
        row = ("unit/a", "plain", "one", "fail", "our own", "")
        self.assertEqual(messages(table_of(row)), ["no reason why it does not pass: one"])

    def test_no_row(self):
        for row in (ROW[:5], ("unit/a", "udp", *ROW[2:]), (*ROW[:3], "passes", "", "")):
            self.assertEqual(table_of(ROW, row).unreadable, [(3, "not a row of the table")])

    def test_units_of_the_suite(self):
        ours = [unit for unit, _ in table.UNITS] + list(table.LEFT_OUT)
        self.assertEqual(table.left_out(ours), [])
        self.assertEqual(table.left_out([*ours, "unit/new"]),
                         ["table.py: unit/new of the suite is neither run nor left out"])


def main():
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - failed, failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
