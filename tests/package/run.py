#!/usr/bin/env python3
"""What make install puts where, and whether systemd's and logrotate's own programs take it.

    tests/package/run.py --out build/release
"""
import argparse
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

from common import ROOT, Count, Notified, call, exec_start, free_port, make, run, wait_for

EXPOSURE = 20  # of systemd-analyze security, in tenths; today it is 17


def names_of(pattern, suffix=""):
    return sorted(os.path.basename(path)[:len(os.path.basename(path)) - len(suffix)]
                  for path in glob.glob(os.path.join(ROOT, pattern)))


def programs_of(out):
    """The server, and a tool for each file of src/tools: what the Makefile builds."""
    return ["keydb-server"] + [name for name in names_of("src/tools/*.c", ".c") if not name.endswith("_test")]


def installed(count, out, box):
    """make install into folders of this machine, so that the unit names programs that exist."""
    places = ["OUT=" + out, "PREFIX=%s/usr" % box, "SYSCONFDIR=%s/etc" % box, "UNITDIR=%s/units" % box]
    install = make("install", *places)
    count.check("make install", install.returncode == 0, install.stdout)
    programs = programs_of(out)
    count.check("each program is installed, and nothing else", sorted(os.listdir(box + "/usr/bin")) == sorted(programs),
                os.listdir(box + "/usr/bin"))
    count.check("each manual", sorted(os.listdir(box + "/usr/share/man/man1")) == names_of("docs/man/*.1"))
    count.check("each completion", sorted(os.listdir(box + "/usr/share/bash-completion/completions")) ==
                names_of("utils/completion/*.bash", ".bash"))
    unit = open(box + "/units/keydb-server.service").read()
    count.check("no place of the unit is left open", "@PREFIX@" not in unit and "@CONFIG" not in unit, unit)

    for path in ("/etc/keydb/keydb.conf", "/etc/logrotate.d/keydb"):
        with open(box + path, "a") as file:
            file.write("# of the administrator\n")
    links = make("install", *places, "REDIS_LINKS=yes")
    count.check("make install again, with links", links.returncode == 0, links.stdout)
    for path in ("/etc/keydb/keydb.conf", "/etc/logrotate.d/keydb"):
        count.check("%s stays as it was" % path, open(box + path).read().endswith("# of the administrator\n"))
    for program in programs:
        link = box + "/usr/bin/" + program.replace("keydb-", "redis-", 1)
        count.check("%s is %s" % (link, program), os.path.islink(link) and os.readlink(link) == program)
    version = run([box + "/usr/bin/redis-server", "--version"])
    count.check("redis-server --version", version.returncode == 0 and "v=" in version.stdout, version.stdout)
    wrong = make("install", *places, "REDIS_LINKS=maybe")
    count.check("REDIS_LINKS=maybe is refused by name", wrong.returncode != 0 and "REDIS_LINKS=maybe" in wrong.stdout,
                wrong.stdout)

    staged = make("install", "OUT=" + out, "DESTDIR=%s/stage" % box, "PREFIX=/usr")
    count.check("make install DESTDIR=", staged.returncode == 0, staged.stdout)
    unit = open(box + "/stage/lib/systemd/system/keydb-server.service").read()
    count.check("a unit names its places without DESTDIR",
                exec_start(unit)[:2] == ["/usr/bin/keydb-server", "/etc/keydb/keydb.conf"], unit)


def taken_by_systemd(count, box):
    if not shutil.which("systemd-analyze"):
        return count.skip("the unit", "systemd-analyze is missing")
    unit = box + "/units/keydb-server.service"
    verify = run(["systemd-analyze", "verify", "--man=no", unit])
    ours = [line for line in verify.stdout.splitlines() if "keydb" in line]
    count.check("systemd-analyze verify", verify.returncode == 0 and not ours, verify.stdout)
    security = run(["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=%d" % EXPOSURE, unit])
    if "unrecognized option" in security.stdout:
        count.skip("systemd-analyze security", "it knows no --offline")
    else:
        count.check("systemd-analyze security: at most %.1f" % (EXPOSURE / 10), security.returncode == 0,
                    security.stdout)


def user_and_folders(count, box):
    if os.getuid() != 0 or not shutil.which("systemd-sysusers") or not shutil.which("systemd-tmpfiles"):
        return count.skip("user and folders", "needs root, systemd-sysusers and systemd-tmpfiles")
    stage = box + "/stage"
    for _ in "12":
        made = run(["systemd-sysusers", "--root=" + stage, "keydb.conf"])
        count.check("systemd-sysusers", made.returncode == 0, made.stdout)
    users = open(stage + "/etc/passwd").read()
    user = re.search(r"^keydb:x:(\d+):(\d+):[^:]*:/var/lib/keydb:\S*nologin$", users, re.M)
    count.check("the user keydb", bool(user), users)
    made = run(["systemd-tmpfiles", "--create", "--root=" + stage, "keydb.conf"])
    count.check("systemd-tmpfiles", made.returncode == 0, made.stdout)
    for path, mode in (("/run/keydb", 0o755), ("/var/lib/keydb", 0o750), ("/var/log/keydb", 0o750)):
        status = os.stat(stage + path)
        count.check("%s is the user's" % path, user and status.st_uid == int(user.group(1)) and
                    status.st_mode & 0o777 == mode, oct(status.st_mode))


def as_the_unit(count, box):
    """ExecStart, told of by NOTIFY_SOCKET, and each system call that it makes: the unit has to allow it."""
    words = exec_start(open(box + "/units/keydb-server.service").read())
    port = free_port()
    notified = Notified(box + "/notify")
    trace = box + "/trace"
    traced = ["strace", "-f", "-qq", "-o", trace] if shutil.which("strace") and \
        run(["strace", "-o", "/dev/null", "true"]).returncode == 0 else []
    server = subprocess.Popen(traced + words + ["--port", str(port), "--dir", box, "--appendonly", "yes"],
                              env=dict(os.environ, NOTIFY_SOCKET=box + "/notify"), stdin=subprocess.DEVNULL,
                              stdout=open(box + "/log", "w"), stderr=subprocess.STDOUT, start_new_session=True)
    try:
        count.check("the server says that it is ready", notified.ready(server), open(box + "/log").read())
        count.check("PING", wait_for(lambda: call(port, "PING") == "+PONG", server))
        for words in (("SET", "k", "v"), ("EVAL", "return redis.call('get','k')", 0), ("BGSAVE",),
                      ("CONFIG", "REWRITE"), ("CONFIG", "SET", "server-thread-affinity", "no"), ("INFO", "all")):
            call(port, *words)
        saved = wait_for(lambda: "rdb_bgsave_in_progress:0" in call(port, "INFO", "persistence"), server)
        count.check("BGSAVE ends", saved)
        try:
            call(port, "SHUTDOWN")
        except OSError:
            pass
        count.check("SHUTDOWN ends it cleanly", server.wait(60) == 0, open(box + "/log").read())
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        notified.close()
    if not traced or not shutil.which("systemd-analyze"):
        return count.skip("system calls of the unit", "strace, or the right to use it, or systemd-analyze is missing")
    made = set(re.findall(r"^\d+ +(\w+)\(", open(trace).read(), re.M))
    allowed = allowed_calls(open(box + "/units/keydb-server.service").read())
    count.check("the unit allows each system call that the server made", made and made <= allowed,
                " ".join(sorted(made - allowed)))


def group_of_calls(name, known):
    """What a group of systemd's, as @aio, consists of."""
    if name not in known:
        known[name] = set()
        for line in run(["systemd-analyze", "syscall-filter", "--no-pager", name]).stdout.splitlines()[1:]:
            word = line.strip()
            if word.startswith("@"):
                known[name] |= group_of_calls(word, known)
            elif word and not word.startswith("#"):
                known[name].add(word)
    return known[name]


def allowed_calls(unit):
    known = {}
    allowed = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        calls = set().union(*(group_of_calls(word, known) for word in line.lstrip("~").split()))
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


def log_is_rotated(count, box):
    if not shutil.which("logrotate"):
        return count.skip("logrotate's file", "logrotate is missing")
    user = pwd.getpwuid(os.getuid()).pw_name
    text = open(os.path.join(ROOT, "utils/logrotate/keydb")).read()
    text = text.replace("/var/log/keydb", box + "/logs").replace("su keydb keydb", "su %s %s" % (user, user))
    os.mkdir(box + "/logs", 0o750)
    open(box + "/logs/keydb.log", "w").write("line\n")
    open(box + "/rotate.conf", "w").write(text)
    turned = run(["logrotate", "--force", "--state", box + "/rotate.state", box + "/rotate.conf"])
    count.check("logrotate", turned.returncode == 0 and os.listdir(box + "/logs") == ["keydb.log.1"], turned.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/release")
    out = parser.parse_args().out
    count = Count()
    with tempfile.TemporaryDirectory() as box:
        installed(count, out, box)
        taken_by_systemd(count, box)
        user_and_folders(count, box)
        as_the_unit(count, box)
        log_is_rotated(count, box)
    count.end()


if __name__ == "__main__":
    main()
