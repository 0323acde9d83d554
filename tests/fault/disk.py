"""What a loss of power would have left: reads the server's record of its files (src/base/power_cut_log.h) after it was
killed, cuts files back to what was synced, and undoes changes of names whose folder was not."""
import os


class Disk:
    def __init__(self, folder):
        self.folder = folder
        self.before = {self._inode(path) for path in self._files()}

    def _files(self):
        for where, _, names in os.walk(self.folder):
            for name in names:
                yield os.path.join(where, name)

    @staticmethod
    def _inode(path):
        try:
            return os.stat(path).st_ino
        except FileNotFoundError:
            return None

    def crash(self, journal, random, partly):
        """`partly`: as disks do it, some of what was not synced is there all the same: of names the earlier changes, of
        each file some of its bytes. Else nothing of it is. Returns what was lost: (changes of names, bytes)."""
        synced, pending = self._read(journal)
        lost = len(pending) if not partly else random.randint(0, len(pending))
        for change in reversed(pending[len(pending) - lost:] if lost else []):
            self._undo(change)
        lost_bytes = 0
        for path in list(self._files()):
            inode, size = os.stat(path).st_ino, os.stat(path).st_size
            if inode in synced and size > synced[inode]:
                keep = random.randint(synced[inode], size) if partly else synced[inode]
                os.truncate(path, keep)
                lost_bytes += size - keep
            elif inode not in synced and inode not in self.before and not partly:
                os.unlink(path)  # made a moment ago, and not even recorded
        self.tidy()
        return lost, lost_bytes

    def tidy(self):
        for path in list(self._files()):
            if ".saved-" in os.path.basename(path):
                os.unlink(path)

    def _read(self, journal):
        synced, pending, syncs = {}, [], {}
        try:
            lines = open(journal, encoding="utf-8").read().split("\n")
        except FileNotFoundError:
            lines = []
        for line in lines:
            words = line.split(" ")
            kind = words[0]
            if kind == "C":
                synced[int(words[1])] = 0
                pending.append({"kind": kind, "inode": int(words[1]), "path": words[2], "done": True, "id": None})
            elif kind == "O":
                synced.setdefault(int(words[1]), int(words[2]))
            elif kind == "S":
                synced[int(words[1])] = max(int(words[2]), synced.get(int(words[1]), 0))
            elif kind == "T":
                synced[int(words[1])] = min(int(words[2]), synced.get(int(words[1]), int(words[2])))
            elif kind == "R":
                pending.append({"kind": kind, "id": words[1], "inode": int(words[2]), "saved": words[3],
                                "from": words[4], "path": words[5], "done": False})
            elif kind == "U":
                pending.append({"kind": kind, "id": words[1], "inode": int(words[2]), "saved": words[3],
                                "path": words[4], "done": False})
            elif kind == "D":
                for change in pending:
                    change["done"] = change["done"] or change["id"] == words[1]
            elif kind == "f":
                folder = os.path.normpath(words[2])
                syncs[words[1]] = [change for change in pending
                                   if change["done"] and os.path.dirname(os.path.normpath(change["path"])) == folder]
            elif kind == "F":
                settled = syncs.pop(words[1])
                pending = [change for change in pending if not any(change is other for other in settled)]
        return synced, pending

    def _undo(self, change):
        path, inode = change["path"], change["inode"]
        if change["kind"] == "C":
            if self._inode(path) == inode:
                os.unlink(path)
            return
        if change["kind"] == "R":
            if self._inode(path) != inode or os.path.exists(change["from"]):
                return  # it did not come to that
            os.rename(path, change["from"])
        elif os.path.exists(path):
            return
        if change["saved"] != "-" and os.path.exists(change["saved"]):
            os.rename(change["saved"], path)
