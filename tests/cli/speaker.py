"""A server that says what it is told to: the nth command gets the nth of its replies, whatever it is."""
import socket
import threading


class Speaker:
    """A command behind the last reply closes the connection; with `closes` the last reply does."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.replies = []
        self.closes = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        replies = None
        with connection:
            try:
                while True:
                    data = connection.recv(65536)
                    if not data:
                        return
                    if b"COMMAND\r\n$4\r\nDOCS" in data:     # redis-cli asks when it reads commands
                        connection.sendall(b"*0\r\n")
                        continue
                    if replies is None:
                        replies = list(self.replies)
                    if b"$5\r\nHELLO" in data:
                        connection.sendall(b"%0\r\n")
                        continue
                    if not replies:
                        return
                    connection.sendall(replies.pop(0))
                    if self.closes and not replies:
                        return
            except OSError:
                pass

    def say(self, *replies, closes=False):
        self.replies, self.closes = list(replies), closes
