"""What a power failure would have left of a server's folder. The server is started with a library (preload.c) that
records what it does with its files. After the server was killed, the same library applies the record to the folder."""
import ctypes
import os


def library_of(binary):
    path = os.path.join(os.path.dirname(os.path.abspath(binary)), "..", "test", "fault.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: make programs builds it beside the server")
    return os.path.normpath(path)


def environment_of(binary, **settings):
    """The environment of a server that loads the library; the settings are those of preload.c."""
    options = os.environ.get("ASAN_OPTIONS", "")
    return {**settings, "LD_PRELOAD": library_of(binary),
            "ASAN_OPTIONS": options + (":" if options else "") + "verify_asan_link_order=0"}


class Loss(ctypes.Structure):
    _fields_ = [("changes", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class Disk:
    """The disk of one server; to be made before the server is started."""

    NOW = 2 ** 64 - 1

    def __init__(self, binary, folder):
        self.folder = folder
        self.library = ctypes.CDLL(library_of(binary))
        self.environment = environment_of(binary, KEYDB_POWER_CUT=folder)
        self.library.power_cut_begin(os.fsencode(folder))
        self.library.power_cut_point.restype = ctypes.c_uint64
        self.began = self.library.power_cut_point(os.fsencode(folder))

    def cut_power(self, random, partly):
        """`partly`: a random part of what was not synced stays. Returns what was lost: (changes of names, bytes)."""
        if self.library.power_cut_point(os.fsencode(self.folder)) == self.began:
            raise RuntimeError("the server has not been recorded")
        loss = Loss()
        seed = random.randrange(1, 2 ** 64) if partly else 0
        self.library.power_cut_apply(os.fsencode(self.folder), ctypes.c_uint64(self.NOW), ctypes.c_uint64(seed),
                                     ctypes.byref(loss))
        return loss.changes, loss.bytes
