"""What the gauge runs by default, and the table of what comes of each test.

UNITS is the whole run; FAST, a part of it, is what `make test` runs. A row of the table counts only if its unit is in
the run, so breaches() looks for rows that no run would compare, or that stand there twice; the runner refuses such a
table, and so does make lint, for which this file is a program that prints "file:line: message".
"""
import collections
import os
import re
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected.tsv")
HEAD = "unit\tmode\ttest\tresult\twaits for\treason\n"
RESULTS = ("pass", "fail", "apart", "skip", "ignore")
MODES = ("plain", "tls")

UNITS = [("unit/" + name, "plain") for name in (
    "auth protocol keyspace scan info info-command type/string type/incr expire multi quit other "
    "introspection introspection-2 limits obuf-limits querybuf networking memefficiency maxmemory lazyfree "
    "oom-score-adj shutdown latency-monitor slowlog client-eviction replybufsize pause bitops bitfield "
    "hyperloglog type/list type/list-2 type/list-3 type/set type/hash type/zset type/stream type/stream-cgroups "
    "sort geo pubsub pubsubshard tracking acl acl-v2 scripting functions aofrw violations pendingquerybuf "
    "dump wait").split()]
UNITS += [("integration/" + name, "plain") for name in (
    "block-repl replication replication-psync replication-2 replication-3 replication-4 replication-buffer "
    "psync2 psync2-reg psync2-pingoff psync2-master-restart failover shutdown "
    "rdb corrupt-dump corrupt-dump-fuzzer convert-zipmap-hash-on-load convert-ziplist-hash-on-load "
    "convert-ziplist-zset-on-load logging aof aof-multi-part aof-race redis-cli redis-benchmark "
    "dismiss-mem").split()]
UNITS += [("unit/" + name, "tls") for name in "tls auth protocol quit limits networking".split()]
FAST = [("unit/" + name, "plain") for name in (
    "auth protocol keyspace scan info-command type/incr quit introspection limits networking oom-score-adj "
    "slowlog").split()]
FAST += [("unit/tls", "tls")]

# Units that look from a second connection at a server busy with a script: with several threads another one answers.
THREADS = {("unit/scripting", "plain"): 1, ("unit/functions", "plain"): 1, ("unit/multi", "plain"): 1}
# Units that look for the forked child of a save, or kill it.
FORKS = {("unit/" + name, "plain") for name in "aofrw oom-score-adj other shutdown type/set".split()}
FORKS |= {("integration/" + name, "plain") for name in "aof-multi-part dismiss-mem rdb replication".split()}
# Units that need longer than others, in seconds.
SECONDS = {("integration/replication", "plain"): 900, ("integration/replication-psync", "plain"): 600}
# Tests without which the rest of their unit cannot run, so that they run also where others are asked for by name.
BASES = {("integration/replication", "plain"): ["SLAVEOF should start with link status \"down\""]}
# Of the suite's own list: what is not run, and why. The runner compares the two.
_CLUSTER = "needs a cluster"
LEFT_OUT = {
    "unit/printver": "prints the version, and tests nothing",
    **{"unit/" + name: _CLUSTER for name in "cluster cluster-scripting cluster/misc cluster/links".split()},
}


class Table:
    """Rows in the order of the runs: (unit, mode) -> test -> [result, part, reason]. What is wrong with the text is in
    `faults`, as (line, message); of two rows of one test the later counts. Lines that are no rows are lost when the
    table is saved, hence `unreadable`."""

    def __init__(self, path=PATH):
        self.path = path
        self.units = {}
        self.faults = []
        self.unreadable = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file.read().split("\n")[1:], 2):
                if line:
                    self._read(number, line.split("\t"))

    def _read(self, number, fields):
        if len(fields) != 6 or fields[1] not in MODES or fields[3] not in RESULTS:
            self.unreadable.append((number, "not a row of the table"))
            return
        unit, mode, test, result, _, reason = fields
        rows = self.units.setdefault((unit, mode), {})
        if test in rows:
            self.faults.append((number, "%s (%s) has two rows for: %s" % (unit, mode, test)))
        if result != "pass" and not reason:
            self.faults.append((number, "no reason why it does not pass: %s" % test))
        rows[test] = fields[3:]

    def save(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(HEAD)
            for unit, mode in [*UNITS, *(key for key in self.units if key not in UNITS)]:
                for test, row in self.units.get((unit, mode), {}).items():
                    file.write("\t".join([unit, mode, test, *row]) + "\n")


def breaches(table, units=None, fast=None):
    """(line, message): why not every row is compared exactly once by a whole run."""
    units = UNITS if units is None else units
    fast = FAST if fast is None else fast
    found = table.unreadable + table.faults
    found += [(1, "%s (%s) is run twice" % key) for key, count in collections.Counter(units).items() if count > 1]
    found += [(1, "%s (%s) is in the fast part twice" % key) for key, count in collections.Counter(fast).items()
              if count > 1]
    found += [(1, "%s (%s) is in the fast part, but not in the whole run" % key) for key in fast if key not in units]
    found += [(1, "%s (%s) is run, but has no rows" % key) for key in dict.fromkeys(units) if key not in table.units]
    found += [(1, "%s (%s) has %d rows, but is in no run" % (*key, len(rows))) for key, rows in table.units.items()
              if key not in units]
    return found


def left_out(suite_units):
    """Messages: units of the suite of which nothing here says whether they are run."""
    ours = {unit for unit, _ in UNITS}
    return ["table.py: %s of the suite is neither run nor left out" % unit for unit in suite_units
            if unit not in ours and unit not in LEFT_OUT] + \
           ["table.py: %s is left out, but run" % unit for unit in LEFT_OUT if unit in ours]


def choose(names, mode, table, learning):
    """(keys, messages): the runs of these units, and which of the names mean none."""
    keys, messages = [], []
    for name in dict.fromkeys(names):
        full = name if name.startswith(("unit/", "integration/")) else "unit/" + name
        of_name = [key for key in UNITS if key[0] == full and mode in (None, key[1])]
        if not of_name:
            messages.append("--unit %s: no such unit%s in the runs of table.py" % (name, mode and " (%s)" % mode or ""))
        elif not learning and not any(key in table.units for key in of_name):
            messages.append("--unit %s: there are no rows for it; --update makes them" % name)
        keys += [key for key in of_name if key not in keys]
    return keys, messages


def main():
    found = breaches(Table())
    for line, message in found:
        print("%s:%d: %s" % (os.path.relpath(PATH), line, message))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
