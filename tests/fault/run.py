#!/usr/bin/env python3
"""Servers that are killed, and disks that fail: nothing that was acknowledged is lost, no file is ever half.

    tests/fault/run.py --server build/release/bin/keydb-server [--rounds N] [--stride N] [--seed N]
                       [--only crash|snapshots|shutdown|sync|nth|damage]

--rounds: of kill -9 (rounds.py), also around a full sync (sync.py); a quarter as many, at least eight, in the middle of
snapshots of large values (snapshots.py), and of each way to end in order a tenth as many, at least one (shutdown.py).
--stride: of the single faults (nth.py) and of the damaged files (damage.py) every Nth, 0 none.
The last line is "N passed, N failed"."""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import damage  # noqa: E402
import nth  # noqa: E402
import rounds  # noqa: E402
import shutdown  # noqa: E402
import snapshots  # noqa: E402
import sync  # noqa: E402


def has_no_test_code(binary):
    """The problem, or None: symbols and texts of what is for tests are nowhere in the server."""
    with open(binary, "rb") as file:
        content = file.read()
    found = [text for text in ("power_cut", "KEYDB_POWER_CUT", "KEYDB_FAULT") if text.encode() in content]
    return f"{binary} has {', '.join(found)}" if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--stride", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("crash", "snapshots", "shutdown", "sync", "nth", "damage"))
    parser.add_argument("--keep", action="store_true", help="leave the folders")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="keydb-fault-")
    counts = {True: 0, False: 0}
    began = time.monotonic()

    def report(name, problem):
        counts[problem is None] += 1
        if problem is not None:
            print(f"FAILED  {name}: {problem}", flush=True)
        elif options.verbose:
            print(f"ok      {name}", flush=True)

    print(f"seed {options.seed}, in {folder}", flush=True)
    report("no code of tests is in the server", has_no_test_code(options.server))
    if options.only in (None, "crash"):
        rounds.crash_rounds(options.server, folder, options.rounds, random.Random(options.seed), report)
    if options.only in (None, "snapshots"):
        snapshots.snapshot_rounds(options.server, folder, max(options.rounds // 4, 8), random.Random(options.seed),
                                  report)
    if options.only in (None, "shutdown"):
        shutdown.shutdown_rounds(options.server, folder, max(options.rounds // 10, 1), random.Random(options.seed),
                                 report)
    if options.only in (None, "sync"):
        sync.sync_rounds(options.server, folder, options.rounds, random.Random(options.seed), report)
    if options.only in (None, "nth") and options.stride > 0:
        nth.fault_rounds(options.server, folder, options.stride, report)
    if options.only in (None, "damage") and options.stride > 0:
        damage.damage_rounds(options.server, folder, options.stride, report)
    if counts[False] == 0 and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{time.monotonic() - began:.1f} s")
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
