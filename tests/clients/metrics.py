"""metrics-port: what Prometheus' own parser makes of /metrics, the names in the Grafana dashboard, and the status page
in a browser. The servers: a pair of active nodes under load, and a master with its replica."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

from harness import Lost, Server, free_port

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DASHBOARD = os.path.join(TOP, "utils", "grafana", "keydb.json")
BROWSERS = ("chromium", "google-chrome")
PATIENCE_S = 60
TOKEN = "a-token-of-the-test"

# Run where prometheus_client is: prints the samples' names, or fails as a scraper would.
PARSE = """
import sys
from prometheus_client.parser import text_string_to_metric_families
seen = set()
for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.type != "unknown" and family.documentation, family
    assert family.name not in seen, family.name + " comes twice"
    seen.add(family.name)
    labels = set()
    for sample in family.samples:
        key = (sample.name, tuple(sorted(sample.labels.items())))
        assert key not in labels, "%s %s comes twice" % key
        labels.add(key)
        print(sample.name)
"""


class Member:
    """A server with a metrics-port."""

    def __init__(self, binary, *options):
        self.metrics = free_port()
        self.server = Server(binary, ["--metrics-port", self.metrics, *options], 4)
        self.connection = self.server.connect()

    def call(self, *words):
        return self.connection.command(*words)

    def get(self, path, token=None):
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.metrics, path))
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read().decode()

    def stop(self):
        self.connection.close()
        self.server.stop()


def wait_for(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise Lost(what + " did not come")
        time.sleep(0.05)


def members_up(binary):
    members = [Member(binary, "--active-replica", "yes"), Member(binary, "--active-replica", "yes"), Member(binary)]
    one, other, master = members
    one.call("REPLICAOF", "127.0.0.1", str(other.server.port))
    other.call("REPLICAOF", "127.0.0.1", str(one.server.port))
    members.append(Member(binary, "--replicaof", "127.0.0.1 %d" % master.server.port))
    for member in (one, other):
        wait_for(lambda: re.search(r"^keydb_active_peer_frontier_age_seconds\{", member.get("/metrics")[1], re.M) and
                 re.search(r"^keydb_active_peer_link_up\{.*\} 1$", member.get("/metrics")[1], re.M),
                 "the link of two active nodes")
    wait_for(lambda: re.search(r"^redis_connected_slave_lag_seconds\{", master.get("/metrics")[1], re.M),
             "the link to a replica")
    for member in members[:3]:
        for words in ("SET k v EX 1000", "GET k", "GET none", "INCR k", "SELECT 3", "SET k v", "SELECT 0"):
            member.call(*words.split())
    return members


def check_parser(python, members, count):
    """The names of all samples together."""
    names = set()
    for member, role in zip(members, ("active", "active", "master", "replica")):
        status, text = member.get("/metrics")
        done = subprocess.run([python, "-c", PARSE], input=text, capture_output=True, text=True, timeout=PATIENCE_S)
        problem = None if done.returncode == 0 and status == 200 else done.stderr[-500:] or "HTTP %d" % status
        count.add("metrics of a node (%s): Prometheus' parser" % role, problem)
        names.update(done.stdout.split())
    return names


def dashboard_names():
    with open(DASHBOARD) as file:
        dashboard = json.load(file)
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    texts += [variable["query"] for variable in dashboard["templating"]["list"] if isinstance(variable["query"], str)]
    return {name for text in texts for name in re.findall(r"\b(?:redis|keydb)_\w+", text)}


def check_dashboard(names, count):
    wanted = dashboard_names()
    missing = sorted(wanted - names)
    count.add("dashboard: %d metrics, each of which is there" % len(wanted),
              None if len(wanted) > 20 and not missing else "missing: %s" % ", ".join(missing))


# ---- the page in a browser ----

class Browser:
    """Headless, spoken to through a pair of pipes: messages in JSON, divided by zero bytes."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="keydb-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def put_ends():
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "--window-size=1280,1000", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=put_ends)
        os.close(to_browser)
        os.close(from_browser)
        self.serial = 0
        self.rest = b""
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise Lost("the browser ended")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.serial += 1
        message = {"id": self.serial, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.serial:
                if "error" in answer:
                    raise Lost("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise Lost("%s: %s" % (expression, result["exceptionDetails"]))
        return result["result"].get("value")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)


def load(member, stop):
    connection = member.server.connect()
    i = 0
    while not stop.is_set():
        i += 1
        connection.command("SET", "key:%d" % (i % 5000), "v" * (i % 400))
        connection.command("GET", "key:%d" % (i * 7 % 6000))
        time.sleep(0.0005)
    connection.close()


def look_at_page(browser, member, screenshot):
    shown = "[...document.querySelectorAll('#%s .now b')].map(e => e.textContent)"
    browser.call("Page.navigate", url="http://127.0.0.1:%d/" % member.metrics)
    wait_for(lambda: browser.value("document.getElementById('state')?.textContent") == "token wanted",
             "the question for the token")
    browser.value("document.getElementById('token').value = '%s'" % TOKEN)
    browser.value("document.querySelector('#ask button').click()")
    wait_for(lambda: browser.value("document.getElementById('state')?.textContent") == "ready", "the state")
    wait_for(lambda: browser.value("document.querySelectorAll('#throughput path')[0].getAttribute('d').length") > 40,
             "a line of several points")
    for panel, pattern in (("throughput", r"[\d.]+( k)?"), ("latency", r"[\d.]+ (µs|ms|s)"),
                           ("memory", r"[\d.]+ (KiB|MiB|GiB)"), ("hits", r"[\d.]+ %"), ("network", r"[\d.]+ \w+"),
                           ("clients", r"\d+")):
        first = browser.value(shown % panel)[0]
        if not re.fullmatch(pattern, first):
            raise Lost("%s shows %r" % (panel, first))
    if browser.value(shown % "throughput")[0] == "0":
        raise Lost("no throughput is shown")
    links = browser.value("document.getElementById('links').innerText")
    if not re.search(r"active peer\s+127\.0\.0\.1:\d+\s+up\s", links):
        raise Lost("the links: %r" % links)
    if not re.search(r"set\s", browser.value("document.getElementById('commands').innerText")):
        raise Lost("SET is not among the commands")
    if browser.value("document.documentElement.scrollWidth > window.innerWidth"):
        raise Lost("the page is wider than its window")
    with open(screenshot, "wb") as file:
        file.write(base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"]))
    origin = "http://127.0.0.1:%d/" % member.metrics
    for event in browser.events:
        if event["method"] == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if not url.startswith((origin, "about:", "data:")):
                raise Lost("the page asked for " + url)
        if event["method"] == "Runtime.exceptionThrown":
            raise Lost(str(event["params"]["exceptionDetails"]))
        if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error" and \
                "401" not in event["params"]["entry"]["text"]:
            raise Lost(str(event["params"]["entry"]))


def look_at_links(browser, member, pattern):
    browser.call("Page.navigate", url="http://127.0.0.1:%d/" % member.metrics)
    wait_for(lambda: re.search(pattern, browser.value("document.getElementById('links')?.innerText") or ""),
             "a link like " + pattern)


def check_page(build, members, count):
    member, _, master, replica = members
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("  SKIPPED status page in a browser: neither %s is here" % " nor ".join(BROWSERS))
        return
    stop = threading.Event()
    worker = threading.Thread(target=load, args=(member, stop))
    worker.start()
    browser = problem = None
    try:
        member.call("CONFIG", "SET", "metrics-token", TOKEN)
        browser = Browser(program)
        look_at_page(browser, member, os.path.join(build, "status-page.png"))
        look_at_links(browser, master, r"replica\s+127\.0\.0\.1:%d\s+online\s+\d.*\d+ B" % replica.server.port)
        look_at_links(browser, replica, r"master\s+127\.0\.0\.1:%d\s+up\s" % master.server.port)
    except (Lost, OSError) as lost:
        problem = str(lost)
    finally:
        stop.set()
        worker.join()
        if browser:
            browser.close()
    count.add("status page in a browser", problem)


def run(build, binary, python, count):
    members = []
    try:
        members = members_up(binary)
        check_dashboard(check_parser(python, members, count), count)
        check_page(build, members, count)
    except (Lost, OSError, subprocess.SubprocessError) as problem:
        count.add("metrics", str(problem))
    finally:
        for member in members:
            member.stop()
