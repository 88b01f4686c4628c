"""Load damaged and forged model files, and use what loads; run as a process with limits.

    python tests/io/fuzz_models.py SEED COUNT FOLDER

FOLDER has model files, each with an array of rows for ``transform`` under the same name (.npy).
Prints the number of files of each outcome as JSON. A crash leaves the file in ``forged.tmp``.
"""

import collections
import faulthandler
import hashlib
import json
import os
import random
import resource
import signal
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from manifoldry.io import DamagedModelError, load, model_types

MAGIC = b"manifoldry model\n"
FIXED = len(MAGIC) + 8 + 32
MEMORY = 6 * 2**30  # of addresses, most of which the libraries take
MORE_MEMORY = 2**29  # that loading a file of a few kilobytes may take beyond that of the libraries
SECONDS = 20  # for one file; loading takes milliseconds
# Events of the interpreter by which code could be run while a model is loaded.
FORBIDDEN = ("pickle.find_class", "exec", "compile", "marshal.loads", "import", "os.system",
             "os.exec", "os.fork", "subprocess.Popen", "ctypes.dlopen", "socket.connect",
             "os.remove", "os.rename", "code.__new__")  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 7, 41, 59, 60, 61, 255, 2**31 - 1, 2**31, 2**32, 2**40, 2**63, -(2**63),
           10**30, 0.5, 1e-300, 1e300, -1e300, True)  # fmt: skip
INDICES = (-(2**62), -(2**31), -1, 0, 59, 60, 61, 2**15, 2**31 - 1, 2**40, 2**62)
REALS = (0.0, -1.0, 1e-320, 1e308, -1e308, np.inf, -np.inf, np.nan)
KINDS = ("tuple", "list", "set", "dict", "array", "objects", "records", "sparse", "same", "object",
         "named", "scalar", "slice", "deque", "generator", "random_state", "function", "number",
         "part", "estimate", "float", "dtype", "pickle", "__class__")  # fmt: skip
# Entries of a few bytes that take up to 32 MB each.
COPIED = ({"objects": ["<U8000000", [1], ["a"]]}, {"part": [{"array": 0}, 100_000]},
          {"records": [[f"c{i}", {"array": 0}] for i in range(100)]})  # fmt: skip
DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<c16", ">f8", "|O", "<U5", "<f2", "<M8[s]")


def unpacked(data):
    size = int.from_bytes(data[FIXED - 40 : FIXED - 32], "little")
    start = -(-(FIXED + size) // 64) * 64
    return json.loads(data[FIXED : FIXED + size]), data[start:]


def packed(header, arrays):
    text = json.dumps(header).encode()
    head = MAGIC + len(text).to_bytes(8, "little") + hashlib.sha256(text).digest() + text
    return head + bytes(-len(head) % 64) + arrays


def places(tree):
    """All containers of a tree with their keys."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found.append((node, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


def changed_bytes(rng, data):
    """Damage, as by a disk or a network."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 10))):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:] = b""
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.choice((1, 64, 1000)))
        elif kind == 3:
            del data[at : at + rng.choice((1, 8, 64, 1000))]
        else:
            data[at : at + 8] = rng.choice(INDICES).to_bytes(8, "little", signed=True)
        if len(data) < 2:
            break
    return bytes(data)


def changed_value(rng, header):
    """Another value, kind, class or attribute somewhere in the header."""
    part = header if rng.random() < 0.1 else header[rng.choice(("tree", "tree", "tree", "arrays"))]
    node, key = rng.choice(places(part))
    kind = rng.randrange(8)
    if kind == 0:
        node[key] = rng.choice(NUMBERS)
    elif kind == 7:
        node[key] = json.loads(json.dumps([rng.choice(COPIED)] * rng.choice((1, 100))))
    elif kind == 1:
        other, at = rng.choice(places(header))
        node[key] = json.loads(json.dumps(other[at]))
    elif kind == 2:
        node.pop(key)
    elif kind == 3 and isinstance(node, dict):
        names = (*KINDS, *(k for n, k in places(header["tree"]) if isinstance(n, dict)))
        node[rng.choice(names)] = node.pop(key)
    elif kind == 4 and isinstance(node[key], str):
        node[key] = rng.choice((*model_types._modules(), *DTYPES, "", "euclidean", "precomputed"))
    elif kind == 5 and isinstance(node[key], (int, float)):
        node[key] = node[key] + rng.choice((-1, 1, 10, -10))
    else:
        node[key] = {rng.choice(KINDS): rng.choice((0, 1, -1, [], {}, "f8", [1, 2], None))}


def changed_array(rng, header, arrays):
    """Other numbers in an array, such as neighbors that do not exist."""
    entry = rng.choice(header["arrays"])
    dtype, offset = np.dtype(entry["dtype"]), entry["offset"]
    count = int(np.prod(entry["shape"]))
    values = np.frombuffer(arrays, dtype, count, offset)
    for _ in range(rng.choice((1, 1, 5, 50))):
        if count:
            new = rng.choice(REALS if dtype.kind == "f" else INDICES)
            with np.errstate(all="ignore"):
                wrapped = np.array(new).astype(np.int64) if dtype.kind in "iub" else np.array(new)
                values[rng.randrange(count)] = wrapped.astype(dtype)


def forged(rng, data):
    """Changes by somebody who makes the checksums right again."""
    header, arrays = unpacked(data)
    arrays = bytearray(arrays)
    try:
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            if rng.random() < 0.35:
                changed_array(rng, header, arrays)
            else:
                changed_value(rng, header)
        for entry in header["arrays"]:
            size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
            raw = arrays[entry["offset"] : entry["offset"] + size]
            entry["sha256"] = hashlib.sha256(raw).hexdigest()
    except Exception:
        pass  # the header has become one without checksums
    return packed(header, bytes(arrays))


def crowded(data):
    """The model with one more attribute: few bytes of the file, and gigabytes of memory."""
    header, arrays = unpacked(data)
    header["tree"]["object"][1]["more_"] = [COPIED[0]] * 100
    return packed(header, arrays)


class TooLongError(BaseException):
    """Raised by a timer."""


@contextmanager
def time_limit():
    def stop(*_):
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Watch:
    """Fails when an event by which code could be run occurs while a model is loaded."""

    def __init__(self):
        self.active = False
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if self.active and event.startswith(FORBIDDEN):
            os.write(2, f"loading has caused {event} {arguments!r:.200}\n".encode())
            os._exit(3)


def peak_memory():
    """Bytes that the process has had in memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def outcome(path, X, watch):
    faulthandler.dump_traceback_later(3 * SECONDS, exit=True)  # loops that no timer interrupts
    try:
        with time_limit():
            watch.active = True
            before = peak_memory()
            try:
                model = load(path)
            finally:
                watch.active = False
                assert peak_memory() - before < MORE_MEMORY, "loading has taken too much memory"
    except DamagedModelError:
        return "refused"
    try:
        with time_limit():
            Z = model.transform(X)
            model.inverse_transform(Z)
    except TooLongError:
        return "loaded, too slow"
    except Exception as error:
        return f"loaded, {'MemoryError' if isinstance(error, MemoryError) else 'an error'}"
    return "loaded, used"


def main(seed, count, folder):
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    rng, folder = random.Random(seed), Path(folder)
    files = [(p.read_bytes(), np.load(p.with_suffix(".npy"))) for p in folder.glob("*.model")]
    for name in model_types._modules():  # so that no import is seen as caused by a file
        model_types.class_named(name)
    watch, counts, path = Watch(), collections.Counter(), folder / "forged.tmp"
    for data, X in files:
        path.write_bytes(packed(*unpacked(data)))
        assert outcome(path, X, watch) == "loaded, used"
        path.write_bytes(crowded(data))
        assert outcome(path, X, watch) == "refused"
    for _ in range(count):
        data, X = rng.choice(files)
        path.write_bytes(changed_bytes(rng, data) if rng.random() < 0.2 else forged(rng, data))
        counts[outcome(path, X, watch)] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
