#!/usr/bin/env python3
"""make tidy: clang-tidy, with the checks of .clang-tidy, over the sources.

    utils/tidy.py [--all] [FILE...]         src/**.c unless given

A comment /* clang-tidy -CHECK: why */ in a file takes that check out for this file.
A file that passed is looked at again when it, a header that it includes, or .clang-tidy has changed (stamps under
build/lint); --all looks at each. Prints what clang-tidy says and ends with "N passed, N failed": one a file.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import lint

FLAGS = ["-std=gnu11", "-D_GNU_SOURCE=", "-Isrc"]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    again = "--all" in sys.argv[1:]
    files = [argument for argument in sys.argv[1:] if argument != "--all"] or \
            [path for path in lint.project_files() if path.startswith("src/") and path.endswith(".c")]
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if program is None:
        print("skipped: there is no clang-tidy on this machine")
        return 0
    command = [program, "--quiet"]
    flags = FLAGS + lint.library_flags()
    key = " ".join(command + flags).encode() + lint.read_text(".clang-tidy").encode()
    os.makedirs(lint.CACHE, exist_ok=True)

    def check(path):
        digest = hashlib.sha256(key)
        for member in sorted(lint.header_closure(path, set())):
            with open(member, "rb") as file:
                digest.update(member.encode() + b"\0" + file.read())
        stamp = os.path.join(lint.CACHE, "tidy-" + digest.hexdigest())
        if os.path.exists(stamp) and not again:
            return ""
        without = re.findall(r"/\* clang-tidy (-[\w.-]+): \S", lint.read_text(path))
        checks = ["--checks=" + ",".join(without)] if without else []
        run = subprocess.run(command + checks + [path, "--"] + flags, capture_output=True, text=True)
        if run.returncode == 0:
            open(stamp, "w").close()
            return ""
        return run.stdout.replace(os.getcwd() + "/", "") or run.stderr

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        told = [text for text in pool.map(check, files) if text]
    for text in told:
        print("FAILED " + text.rstrip())
    print(f"{len(files) - len(told)} passed, {len(told)} failed")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
