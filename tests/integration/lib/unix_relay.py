"""unix_relay.py PATH: joins standard input and output to the unix socket PATH, which Tcl itself cannot open."""
import os
import socket
import sys
import threading


def pump_in(peer):
    while True:
        data = os.read(0, 65536)
        if not data:
            break
        peer.sendall(data)
    try:
        peer.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(sys.argv[1])
    threading.Thread(target=pump_in, args=(peer,), daemon=True).start()
    while True:
        try:
            data = peer.recv(65536)
        except OSError:
            data = b""
        if not data:
            break
        while data:
            data = data[os.write(1, data):]
    os._exit(0)


main()
