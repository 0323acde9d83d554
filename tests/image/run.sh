#!/bin/sh
# What the Dockerfile puts into its image, in a root made by mmdebstrap: the packages of deps/packages (run), what make
# install puts there, the entrypoint, a user. The server has to start there as that user, with and without arguments,
# and answer on an address of this machine that is not loopback (so protected mode is off), unless it was switched on.
#
#   tests/image/run.sh                  (as root, after make programs; downloads about 60 MB)
set -eu

cd "$(dirname "$0")/../.."
for tool in mmdebstrap chroot python3; do
    command -v "$tool" >/dev/null || { echo "skipped image: $tool is missing"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped image: only root can make a root folder"; exit 0; }
address=$(hostname -I | awk '{ print $1 }')
[ -n "$address" ] || { echo "skipped image: this machine has only loopback addresses"; exit 0; }

root=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || :; rm -rf --one-file-system "$root"' EXIT
packages=$(deps/install.sh --list apt run | tr ' \n' ',,')
mmdebstrap --quiet --variant=minbase --include="${packages}passwd" bookworm "$root"
make --no-print-directory install DESTDIR="$root" PREFIX=/usr/local >/dev/null
install -m 755 utils/docker/entrypoint.sh "$root/usr/local/bin/keydb-entrypoint"
chroot "$root" useradd --system --home-dir /data --shell /usr/sbin/nologin keydb
chroot "$root" install -d -o keydb -g keydb -m 750 /data
failed=0

# try WANTED ARGUMENT ...: what a PING from outside is answered with
try() {
    wanted=$1
    shift
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
    chroot --userspec=keydb:keydb "$root" /usr/bin/env -C /data keydb-entrypoint "$@" --port "$port" >"$root/log" 2>&1 &
    pid=$!
    got=$(python3 - "$address" "$port" "$pid" <<'PYTHON'
import os, socket, sys, time
for _ in range(200):
    try:
        connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
        connection.sendall(b"PING\r\n")
        print(connection.recv(100).split()[0].decode())
        break
    except OSError:
        if not os.path.exists("/proc/" + sys.argv[3]):
            print("gone")
            break
        time.sleep(0.05)
PYTHON
    )
    kill "$pid" 2>/dev/null || :
    wait "$pid" || :
    pid=
    if [ "$got" = "$wanted" ]; then
        echo "ok      image: keydb-entrypoint $*"
    else
        echo "FAILED  image: keydb-entrypoint $*: $got instead of $wanted"
        sed 's/^/    /' "$root/log"
        failed=1
    fi
}

echo "maxclients 100" >"$root/data/plain.conf"
echo "protected-mode yes" >"$root/data/protected.conf"
try +PONG
try +PONG --maxmemory 100mb
try +PONG keydb-server --maxmemory 100mb
try +PONG /data/plain.conf --maxmemory 100mb
try -DENIED --protected-mode yes
try -DENIED /data/protected.conf
exit "$failed"
