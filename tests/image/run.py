#!/usr/bin/env python3
"""The container without Docker. The Dockerfile's last stage is done step by step in a root made by mmdebstrap; of
its first stage the steps that install and change what was built, on this machine. Then the entrypoint and the health
check run there as processes, as the image's user, with the arguments that docker run would give them; so do the compose
files and the Kubernetes manifests of utils/, whose form is checked against the schemas of Kubernetes.

    tests/image/run.py --out build/release            (as root, after make programs; downloads about 100 MB)
"""
import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "package"))
from common import ROOT, Count, call, free_port, run, wait_for  # noqa: E402
from deb import sources  # noqa: E402

DOCKERFILE = os.path.join(ROOT, "utils/docker/Dockerfile")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON_PACKAGES = ["kubernetes-validate==1.31.0", "PyYAML"]


def why_not():
    for tool in ("mmdebstrap", "chroot"):
        if not shutil.which(tool):
            return tool + " is missing"
    if os.getuid() != 0:
        return "only root can make a root folder"
    return None


def stages(path):
    """The instructions of each stage: (word, rest)."""
    found = []
    text = re.sub(r"^#.*\n", "", open(path).read(), flags=re.M).replace("\\\n", " ")
    for line in filter(None, (line.strip() for line in text.splitlines())):
        word, rest = line.split(None, 1)
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


class Image:
    """The root folder, and what the instructions have set."""

    def __init__(self, box, out):
        self.box = box
        self.root = box + "/root"
        self.user = "root"
        self.workdir = "/"
        self.entrypoint = self.health = None
        self.running = []
        build, last = stages(DOCKERFILE)
        self.build(build, out)
        release = {"12": "bookworm", "13": "trixie"}[re.match(r"debian:(\d+)-slim$", last[0][1]).group(1)]
        self.must(["mmdebstrap", "--quiet", "--variant=minbase", release, self.root, *sources()])
        for word, rest in last[1:]:
            getattr(self, "do_" + word.lower())(rest)

    def must(self, words, **options):
        done = run(words, **options)
        if done.returncode:
            raise SystemExit("%s failed:\n%s" % (shlex.join(words), done.stdout))

    def build(self, stage, out):
        arguments = dict(rest.split("=", 1) for word, rest in stage if word == "ARG")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        environment.update(arguments, OUT=out)
        for word, rest in stage:
            if word == "RUN" and "/image" in rest:
                line = rest.replace("/image", self.box + "/image")
                line = line.replace("make ", "make --old-file=programs OUT=%s " % shlex.quote(out))
                self.must(["sh", "-ec", line], env=environment)

    def do_copy(self, rest):
        words = rest.split()
        place = ROOT
        if words[0].startswith("--from="):
            place = self.box
            words = words[1:]
        *files, target = words
        if target.endswith("/"):
            os.makedirs(self.root + target, exist_ok=True)
        for file in files:
            path = os.path.join(place, file.lstrip("/"))
            self.must(["cp", "-a", "--no-preserve=ownership", path + ("/." if file.endswith("/") else ""),
                       self.root + target])

    def do_run(self, rest):
        environment = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}
        self.must(["chroot", self.root, "/bin/sh", "-ec", rest], env=environment)

    def do_user(self, rest):
        self.user = rest

    def do_workdir(self, rest):
        self.workdir = rest
        os.makedirs(self.root + rest, exist_ok=True)

    def do_volume(self, rest):
        os.makedirs(self.root + rest, exist_ok=True)

    def do_expose(self, rest):
        int(rest)

    def do_entrypoint(self, rest):
        self.entrypoint = json.loads(rest)

    def do_healthcheck(self, rest):
        self.health = json.loads(rest[rest.index("CMD ") + 4:])

    def words(self, words, environment):
        sets = ["PATH=" + PATH] + ["%s=%s" % pair for pair in environment.items()]
        return ["chroot", "--userspec=%s:%s" % (self.user, self.user), self.root, "/usr/bin/env", "-i",
                "-C", self.workdir, *sets, *words]

    def start(self, words, **environment):
        log = open(self.box + "/log", "w")
        process = subprocess.Popen(self.words(words, environment), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        self.running.append(process)
        return process

    def exec(self, words, **environment):
        """docker exec"""
        return run(self.words(words, environment))

    def stop(self, process):
        process.terminate()
        return process.wait(60)

    def log(self):
        return open(self.box + "/log").read()


def address_of_this_machine():
    """One that is not loopback, or None."""
    words = run(["hostname", "-I"]).stdout.split()
    return next((word for word in words if ":" not in word), None)


def ping(host, port):
    """The first word of the answer; nothing while the server loads its data."""
    try:
        word = call(port, "PING", host=host).split()[0]
        return None if word == "-LOADING" else word
    except socket.timeout:
        return "silence"


def entrypoint(count, image):
    host = address_of_this_machine()
    if not host:
        count.skip("protected mode of a container", "this machine has only loopback addresses")
        host = "127.0.0.1"
    open(image.root + "/data/plain.conf", "w").write("maxclients 100\n")
    open(image.root + "/data/protected.conf", "w").write("protected-mode yes\n")
    for wanted, words in (
            ("+PONG", []),
            ("+PONG", ["--maxmemory", "100mb"]),
            ("+PONG", ["keydb-server", "--maxmemory", "100mb"]),
            ("+PONG", ["redis-server", "--maxmemory", "100mb"]),
            ("+PONG", ["/data/plain.conf", "--maxmemory", "100mb"]),
            ("+PONG", ["keydb-server", "/etc/keydb/keydb.conf", "--appendonly", "yes"]),
            ("-DENIED", ["--protected-mode", "yes"]),
            ("-DENIED", ["/data/protected.conf"])):
        if wanted == "-DENIED" and host == "127.0.0.1":
            continue
        port = free_port()
        # The container has ports of its own; here they are shared, so there is one more word.
        server = image.start([*image.entrypoint, *words, "--port", str(port)])
        got = wait_for(lambda port=port: ping(host, port), server)
        count.check("docker run IMAGE %s" % shlex.join(words), got == wanted, "%s\n%s" % (got, image.log()))
        healthy = wait_for(lambda: image.exec(image.health).returncode == 0, server)
        count.check("it is healthy", healthy, image.exec(image.health).stdout)
        if "/etc/keydb/keydb.conf" in words:
            folder = call(port, "CONFIG", "GET", "dir")
            count.check("its data is in /data", os.path.isdir(image.root + "/data/appendonlydir"), folder)
        count.check("docker stop ends it cleanly", image.stop(server) == 0, image.log())
        count.check("a container that has ended is not healthy", image.exec(image.health).returncode != 0)
    other = image.exec([*image.entrypoint, "keydb-cli", "--version"])
    count.check("another program", other.returncode == 0 and "keydb-cli" in other.stdout, other.stdout)
    user = image.exec(["id", "-un"]).stdout.strip()
    count.check("the user is not root", user == "keydb", user)


def health(count, image):
    port = free_port()
    server = image.start([*image.entrypoint, "--port", str(port), "--requirepass", "secret"])
    ready = [*image.health, "--ready"]
    count.check("ready with its password",
                wait_for(lambda: image.exec(ready, REDISCLI_AUTH="secret").returncode == 0, server), image.log())
    count.check("alive without its password", image.exec(image.health).returncode == 0)
    count.check("not ready without its password", image.exec(ready).returncode != 0)
    server.kill()
    server.wait()
    server = image.start([*image.entrypoint, "--port", str(port)])
    count.check("it starts over a socket that a killed one has left",
                wait_for(lambda: image.exec(ready).returncode == 0, server), image.log())
    image.stop(server)
    server = image.start([*image.entrypoint, "--port", str(port), "--unixsocket", ""])
    count.check("without socket the check asks at KEYDB_PORT",
                wait_for(lambda: image.exec(ready, KEYDB_PORT=port).returncode == 0, server), image.log())
    image.stop(server)


def python_with_schemas(box):
    python = box + "/venv/bin/python"
    made = run([sys.executable, "-m", "venv", box + "/venv"])
    if made.returncode == 0:
        made = run([python, "-m", "pip", "--quiet", "install", *PYTHON_PACKAGES])
    return python if made.returncode == 0 else None


READ = """
import json, sys, yaml
json.dump([list(yaml.safe_load_all(open(path))) for path in sys.argv[1:]], sys.stdout)
"""
VALIDATE = """
import sys, yaml, kubernetes_validate
for path in sys.argv[1:]:
    for one in yaml.safe_load_all(open(path)):
        kubernetes_validate.validate(one, "1.31", strict=True)
        print("valid", one["kind"], one["metadata"]["name"])
"""


def examples(count, image):
    python = python_with_schemas(image.box)
    if not python:
        return count.skip("compose files and manifests", "no venv with %s can be made" % " ".join(PYTHON_PACKAGES))
    folder = os.path.join(ROOT, "utils")
    manifests = sorted(os.path.join(folder, "kubernetes", name) for name in os.listdir(folder + "/kubernetes")
                       if name.endswith(".yaml"))
    valid = run([python, "-c", VALIDATE, *manifests])
    kinds = re.findall(r"^valid (\w+)", valid.stdout, re.M)
    count.check("the manifests are those of Kubernetes", valid.returncode == 0 and kinds.count("StatefulSet") == 2,
                valid.stdout)
    wrong = image.box + "/wrong.yaml"
    open(wrong, "w").write(open(manifests[-1]).read().replace("containerPort: 6379", "containerPort: here"))
    count.check("a wrong one is found", run([python, "-c", VALIDATE, wrong]).returncode != 0)

    composes = [folder + "/docker/docker-compose.yml", folder + "/docker/docker-compose.replica.yml"]
    read = subprocess.run([python, "-c", READ, *composes, *manifests], stdout=subprocess.PIPE, check=True)
    documents = [document for file in json.loads(read.stdout) for document in file]
    compose(count, image, documents[0]["services"], documents[1]["services"])
    sets = {document["metadata"]["name"]: document for document in documents if document.get("kind") == "StatefulSet"}
    one_pod(count, image, sets["keydb"])
    two_pods(count, image, sets["keydb-active"])


def compose(count, image, alone, pair):
    service = alone["keydb"]
    words = [word.replace("${KEYDB_PASSWORD:?set it}", "secret") for word in service["command"]]
    port = free_port()
    server = image.start([*image.entrypoint, *words, "--port", str(port)])
    count.check("docker-compose.yml", wait_for(lambda: image.exec(["keydb-healthcheck", "--ready"],
                                                                  REDISCLI_AUTH="secret").returncode == 0, server),
                image.log())
    image.stop(server)
    ports = {name: free_port() for name in pair}
    servers = []
    for name, service in pair.items():
        os.makedirs(image.root + "/data/" + name, exist_ok=True)
        os.chmod(image.root + "/data/" + name, 0o777)
        words = [re.sub(r"^(\w+) 6379$", lambda match: "127.0.0.1 %d" % ports[match.group(1)], word)
                 for word in service["command"]]
        servers.append(image.start([*image.entrypoint, *words, "--port", str(ports[name]), "--dir", "/data/" + name,
                                    "--unixsocket", "/run/keydb/%s.sock" % name]))
    count.check("the master takes a write",
                wait_for(lambda: call(ports["master"], "SET", "k", "v") == "+OK", servers[0]))
    count.check("docker-compose.replica.yml: the replica has it",
                wait_for(lambda: call(ports["replica"], "GET", "k") == "v", servers[1]), image.log())
    for server in servers:
        image.stop(server)


def container_of(stateful_set):
    return stateful_set["spec"]["template"]["spec"]["containers"][0]


def one_pod(count, image, stateful_set):
    container = container_of(stateful_set)
    context = stateful_set["spec"]["template"]["spec"]["securityContext"]
    user = image.exec(["id", "-u"]).stdout.strip() + " " + image.exec(["id", "-g"]).stdout.strip()
    count.check("the manifest's user is the image's", user == "%(runAsUser)d %(runAsGroup)d" % context, user)
    words = [word.replace("$(REDISCLI_AUTH)", "secret") for word in container["args"]]
    server = image.start([*image.entrypoint, *words, "--port", str(free_port())])
    for probe in ("readinessProbe", "livenessProbe"):
        command = container[probe]["exec"]["command"]

        def passes(command=command):
            return image.exec(command, REDISCLI_AUTH="secret").returncode == 0
        count.check("keydb.yaml: %s" % probe, wait_for(passes, server), image.log())
    image.stop(server)


def two_pods(count, image, stateful_set):
    """Both share a machine here: so each has an address of loopback, a folder and a socket by its name."""
    container = container_of(stateful_set)
    names = ["%s-%d" % (stateful_set["metadata"]["name"], number) for number in range(stateful_set["spec"]["replicas"])]
    with open(image.root + "/etc/hosts", "w") as hosts:
        hosts.write("127.0.0.1 localhost\n")
        for number, name in enumerate(names):
            hosts.write("127.0.0.%d %s.%s\n" % (number + 2, name, stateful_set["spec"]["serviceName"]))
    port = free_port()
    servers = []
    for number, name in enumerate(names):
        os.makedirs(image.root + "/data/" + name, exist_ok=True)
        os.chmod(image.root + "/data/" + name, 0o777)
        script = container["command"][-1].replace(' 6379"', ' %d"' % port)
        script += " --bind 127.0.0.%d --port %d --dir /data/%s --unixsocket /run/keydb/%s.sock" % (
            number + 2, port, name, name)
        servers.append(image.start([*container["command"][:-1], script], HOSTNAME=name, REDISCLI_AUTH="secret"))
    ready = [[word.replace("keydb.sock", name + ".sock") for word in container["readinessProbe"]["exec"]["command"]]
             for name in names]
    for number, name in enumerate(names):
        count.check("keydb-active.yaml: %s is ready" % name,
                    wait_for(lambda number=number: image.exec(ready[number], REDISCLI_AUTH="secret").returncode == 0,
                             servers[number]), image.log())
    cli = [["keydb-cli", "-s", "/run/keydb/%s.sock" % name] for name in names]
    for words in cli:
        image.exec([*words, "INCR", "visits"], REDISCLI_AUTH="secret")
    for words in cli:
        count.check("both increments are there", wait_for(
            lambda words=words: image.exec([*words, "GET", "visits"], REDISCLI_AUTH="secret").stdout.strip() == "2"))
    image.stop(servers[0])
    count.check("one node alone is ready", image.exec(ready[1], REDISCLI_AUTH="secret").returncode == 0)
    image.stop(servers[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/release")
    out = parser.parse_args().out
    count = Count()
    why = why_not()
    if why:
        count.skip("the container", why)
        count.end()
    with tempfile.TemporaryDirectory() as box:
        os.chmod(box, 0o755)
        image = None
        try:
            image = Image(box, out)
            entrypoint(count, image)
            health(count, image)
            examples(count, image)
        finally:
            for process in image.running if image else []:
                process.kill()
                process.wait()
            run(["rm", "-rf", "--one-file-system", box + "/root"])
    count.end()


if __name__ == "__main__":
    main()
