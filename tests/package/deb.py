#!/usr/bin/env python3
"""The Debian package in a root of its own, made by mmdebstrap from the apt sources: installed, started as its
user by the command of its unit, upgraded to a version with another configuration, removed, installed again, purged.

    tests/package/deb.py --out build/release            (as root)
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import tempfile

from common import ROOT, Count, Notified, call, exec_start, free_port, run, wait_for

UNIT = "/lib/systemd/system/keydb-server.service"
LINK = "/etc/systemd/system/multi-user.target.wants/keydb-server.service"
CONFIG = "/etc/keydb/keydb.conf"


def why_not():
    for tool in ("mmdebstrap", "dpkg-deb", "dpkg-shlibdeps", "chroot"):
        if not shutil.which(tool):
            return tool + " is missing"
    if os.getuid() != 0:
        return "only root can make a root folder"
    return None


def sources():
    return [path for path in glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*.list") +
            glob.glob("/etc/apt/sources.list.d/*.sources") if os.path.getsize(path)]


def make_root(root, packages):
    codename = re.search(r"^VERSION_CODENAME=(\w+)", open("/etc/os-release").read(), re.M).group(1)
    made = run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=" + ",".join(packages), codename, root,
                *sources()])
    if made.returncode:
        raise SystemExit("mmdebstrap failed:\n" + made.stdout)


def build(out, revision, links="no"):
    built = run(["utils/deb/build.sh"], env=dict(os.environ, OUT=out, MAKE="make", DEB_REVISION=str(revision),
                                                 REDIS_LINKS=links))
    if built.returncode:
        raise SystemExit("the package is not built:\n" + built.stdout)
    return built.stdout.split()[-1]


def with_other_config(package, box):
    """The same package whose configuration has a line more, as a next version may have."""
    content = box + "/content"
    run(["dpkg-deb", "-R", package, content], check=True)
    with open(content + CONFIG, "a") as file:
        file.write("\n# a line of the next version\n")
    run(["dpkg-deb", "--root-owner-group", "-b", content, package], check=True)
    return package


class Machine:
    """The root folder, and what is done in it."""

    def __init__(self, root, count):
        self.root = root
        self.count = count
        self.servers = []

    def do(self, *words):
        return run(["chroot", self.root, *words], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                                                        "DEBIAN_FRONTEND": "noninteractive"})

    def must(self, what, *words):
        done = self.do(*words)
        self.count.check(what, done.returncode == 0, done.stdout)
        return done.stdout

    def install(self, what, package):
        shutil.copy(package, self.root + "/tmp/keydb.deb")
        return self.must(what, "dpkg", "-i", "--force-confold", "/tmp/keydb.deb")

    def has(self, path):
        return os.path.lexists(self.root + path)

    def text(self, path):
        return open(self.root + path).read()

    def owner(self, path):
        return self.do("stat", "-c", "%U:%G %a", path).stdout.strip()

    def start(self, *more):
        """The server as its unit starts it: its process and its port."""
        port = free_port()
        notified = Notified(self.root + "/run/notify")
        words = ["chroot", "--userspec=keydb:keydb", self.root, "/usr/bin/env", "-C", "/var/lib/keydb",
                 "NOTIFY_SOCKET=/run/notify", *exec_start(self.text(UNIT)), "--port", str(port), *more]
        with open(self.root + "/tmp/log", "w") as log:
            server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.servers.append(server)
        ready = notified.ready(server)
        notified.close()
        os.unlink(self.root + "/run/notify")
        self.count.check("the server starts and says that it is ready", ready, self.text("/tmp/log"))
        self.count.check("PING", wait_for(lambda: call(port, "PING") == "+PONG", server), self.text("/tmp/log"))
        return server, port

    def stop(self, server):
        server.terminate()
        self.count.check("SIGTERM ends it cleanly", server.wait(60) == 0, self.text("/tmp/log"))


def life(machine, first, second):
    count = machine.count
    machine.install("dpkg -i", first)
    for path, owner in (("/var/lib/keydb", "keydb:keydb 750"), ("/var/log/keydb", "keydb:keydb 750"),
                        ("/etc/keydb", "root:keydb 2770"), (CONFIG, "keydb:keydb 640")):
        count.check("%s: %s" % (path, owner), machine.owner(path) == owner, machine.owner(path))
    count.check("the service is enabled", machine.has(LINK))
    count.check("no link of Redis' names", not machine.has("/usr/bin/redis-server"))
    machine.must("the programs are whole", "dpkg", "--verify", "keydb")

    server, port = machine.start()
    user = os.stat("/proc/%d" % server.pid).st_uid
    count.check("it runs as keydb", user == int(machine.do("id", "-u", "keydb").stdout), user)
    pong = machine.do("keydb-cli", "-p", str(port), "PING").stdout
    count.check("keydb-cli", pong.strip() == "PONG", pong)
    count.check("SET", call(port, "SET", "k", "kept") == "+OK")
    count.check("CONFIG SET", call(port, "CONFIG", "SET", "maxclients", "123") == "+OK")
    rewritten = call(port, "CONFIG", "REWRITE")
    count.check("CONFIG REWRITE may write its file", rewritten == "+OK", rewritten)
    machine.stop(server)
    count.check("the data is in its folder", machine.has("/var/lib/keydb/dump.rdb"))

    open(machine.root + "/var/log/keydb/keydb.log", "w").write("line\n")
    machine.do("chown", "keydb:keydb", "/var/log/keydb/keydb.log")
    machine.must("logrotate", "logrotate", "--force", "/etc/logrotate.d/keydb")
    count.check("the log is turned", machine.has("/var/log/keydb/keydb.log.1"))

    os.unlink(machine.root + LINK)  # systemctl disable
    machine.install("upgrade", second)
    count.check("the configuration is kept", "maxclients 123" in machine.text(CONFIG))
    count.check("the new one is beside it", "next version" in machine.text(CONFIG + ".dpkg-dist"))
    count.check("the service stays disabled", not machine.has(LINK))
    count.check("the configuration's owner", machine.owner(CONFIG) == "keydb:keydb 640", machine.owner(CONFIG))
    server, port = machine.start()
    count.check("the data is kept", call(port, "GET", "k") == "kept")
    machine.stop(server)

    machine.must("dpkg -r", "dpkg", "-r", "keydb")
    count.check("the programs are gone", not machine.has("/usr/bin/keydb-server") and not machine.has(UNIT))
    count.check("configuration and data stay", "maxclients 123" in machine.text(CONFIG) and
                machine.has("/var/lib/keydb/dump.rdb"))
    machine.install("dpkg -i once more", first)
    server, port = machine.start()
    count.check("the data is there again", call(port, "GET", "k") == "kept")
    count.check("the configuration as well", call(port, "INFO", "clients").find("maxclients:123") > 0)
    machine.stop(server)

    machine.must("dpkg -P", "dpkg", "-P", "keydb")
    for path in ("/etc/keydb", "/var/lib/keydb", "/var/log/keydb", "/etc/logrotate.d/keydb", LINK,
                 "/etc/systemd/system/keydb-server.service"):
        count.check("%s is gone" % path, not machine.has(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/release")
    out = parser.parse_args().out
    count = Count()
    why = why_not()
    if why:
        count.skip("the Debian package", why)
        count.end()
    with tempfile.TemporaryDirectory() as box:
        first = shutil.copy(build(out, 1), box)
        second = with_other_config(shutil.copy(build(out, 2), box), box)
        links = build(out, 1, "yes")
        taken = run(["dpkg-deb", "-f", links, "Conflicts"]).stdout
        count.check("with links it takes the place of Redis' packages", "redis-server" in taken, taken)
        listed = run(["dpkg-deb", "-c", links]).stdout
        count.check("with links", re.search(r"/usr/bin/redis-cli -> keydb-cli", listed), listed)
        build(out, 1)
        packages = run(["deps/install.sh", "--list", "apt", "run"]).stdout.split()
        root = box + "/root"
        make_root(root, packages + ["passwd", "init-system-helpers", "logrotate"])
        os.chmod(box, 0o755)
        machine = Machine(root, count)
        try:
            life(machine, first, second)
        finally:
            for server in machine.servers:
                server.kill()
                server.wait()
            run(["rm", "-rf", "--one-file-system", root])
    count.end()


if __name__ == "__main__":
    main()
