"""The C interface of libgossamer (gossamer/gossamer.h), by ctypes.

Plain functions over memory: no extension module, so that one wheel serves every
Python and every torch.  A call lets go of the interpreter's lock while it runs.
"""

import ctypes
import os
import pathlib

ABI = 1

OK, TURN, OVER, AGAIN = 0, 1, 2, 3
FAILED, INVALID, BUSY, FORKED, STATE = -1, -2, -3, -4, -5


class Tensor(ctypes.Structure):
    _fields_ = [("player", ctypes.c_char_p),
                ("name", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("rank", ctypes.c_size_t)]


SAVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p,
                        ctypes.POINTER(ctypes.c_void_p),
                        ctypes.POINTER(ctypes.c_size_t))
LOAD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                        ctypes.c_size_t)


class State(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("save", SAVE), ("load", LOAD)]


class Status(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("round", ctypes.c_uint64),
                ("rounds", ctypes.c_uint64), ("seed", ctypes.c_uint64),
                ("members", ctypes.c_uint32), ("peers", ctypes.c_uint32)]


def _path():
    """The library of this package, or that which GOSSAMER_LIBRARY names."""
    named = os.environ.get("GOSSAMER_LIBRARY")
    if named:
        return os.path.abspath(named)
    return str(pathlib.Path(__file__).parent / "lib" / "libgossamer.so")


def _load():
    path = _path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"gossamer: {path} cannot be loaded: {error}; install the wheel "
            "again, or let GOSSAMER_LIBRARY name a libgossamer.so") from None
    peer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in [
        ("abi", ctypes.c_int, []),
        ("version", text, []),
        ("error", text, []),
        ("open", peer, [ctypes.POINTER(text), ctypes.c_size_t,
                        ctypes.POINTER(Tensor), ctypes.c_size_t]),
        ("use_memory", ctypes.c_int, [peer, ctypes.c_void_p]),
        ("use_cuda_memory", ctypes.c_int, [peer, ctypes.c_void_p,
                                           ctypes.c_int]),
        ("set_state", ctypes.c_int, [peer, ctypes.POINTER(State)]),
        ("start", ctypes.c_int, [peer]),
        ("wait", ctypes.c_int, [peer, ctypes.c_int]),
        ("mix", ctypes.c_int, [peer]),
        ("losses", ctypes.c_int, [peer, ctypes.POINTER(ctypes.c_double),
                                  ctypes.c_size_t]),
        ("status_of", ctypes.c_int, [peer, ctypes.POINTER(Status)]),
        ("stop", ctypes.c_int, [peer]),
        ("leave", ctypes.c_int, [peer]),
        ("close", None, [peer]),
    ]:
        function = getattr(library, "gossamer_" + name)
        function.restype, function.argtypes = result, arguments
    if library.gossamer_abi() != ABI:
        raise ImportError(
            f"gossamer: {path} has interface {library.gossamer_abi()}, and this "
            f"package needs {ABI}: install one release of both")
    return library


library = _load()


def error():
    return library.gossamer_error().decode(errors="replace")
