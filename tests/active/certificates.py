"""Certificates for links over TLS: each set has its own authority, and is made once by utils/gen-test-certs.sh."""
import atexit
import os
import shutil
import subprocess
import tempfile

import mesh as meshes
from harness import free_port

SCRIPT = os.path.join(meshes.TOP, "utils", "gen-test-certs.sh")
made = {}


def folder(authority="main"):
    """Has ca.crt, server.crt, server.key, client.crt and client.key."""
    if authority not in made:
        path = tempfile.mkdtemp(prefix="active-certs-")
        atexit.register(shutil.rmtree, path, True)
        subprocess.run(["sh", SCRIPT, path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made[authority] = path
    return made[authority]


def words(authority="main", prefix="--"):
    """Directives and values of a server that shows its certificate, and asks for those of clients."""
    path = folder(authority)
    return [word for name, file in (("tls-cert-file", "server.crt"), ("tls-key-file", "server.key"),
                                    ("tls-ca-cert-file", "ca.crt"))
            for word in (prefix + name, os.path.join(path, file))]


def options_of_node(number=None, choose=None):
    """A node whose links go over TLS; each has a port of its own for it, beside the plain one."""
    return ["--tls-port", str(free_port()), *words(), "--tls-replication", "yes"]
