"""A program's place in a fleet: join, mix, leave."""

import atexit
import contextlib
import ctypes
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from gossamer import _library
from gossamer._library import library
from gossamer._players import Players, PlayersError

# Milliseconds between two looks at signals while the program waits.
_LOOK = 200
# Seconds of a wait after which people are told of it.
_LONG_WAIT = 10

# The variable by which python -m gossamer.run gives a program its options.
_OPTIONS = "GOSSAMER_OPTIONS"


class FleetError(RuntimeError):
    """The fleet, or this peer's place in it, cannot go on."""


class ForkedError(FleetError):
    """A fleet that was joined in the process of which this one is a fork."""


def _check(code, invalid=ValueError):
    if code >= 0:
        return code
    why = _library.error()
    if code == _library.FORKED:
        raise ForkedError(why)
    raise invalid(why) if code == _library.INVALID else FleetError(why)


def _number(loss):
    return loss.detach().item() if torch.is_tensor(loss) else float(loss)


def _bytes_of(kept):
    out = io.BytesIO()
    torch.save(kept, out)
    return out.getvalue()


def _read(saved):
    """What a peer has saved: tensors and numbers, and no code of another's."""
    try:
        return torch.load(io.BytesIO(saved), map_location="cpu",
                          weights_only=True)
    except Exception as failure:
        # torch says more, for those who may load with code.
        why = re.search(r"Unsupported \w+: [^.\n]+\S*", str(failure))
        raise FleetError(
            "the state is to be read back without running code, so it may have "
            "tensors, numbers, texts and containers of those only: " +
            (why[0] if why else str(failure).partition("\n")[0])) from None


def _words(names):
    return ", ".join(names) or "nothing"


def join(config: str | os.PathLike | None = None, *,
         players: Mapping[str, Any],
         topology: str | None = None,
         id: int | None = None,
         listen: str | None = None,
         advertise: str | None = None,
         run_dir: str | os.PathLike | None = None,
         certs: str | os.PathLike | None = None,
         insecure: bool = False,
         resume: bool = False,
         replay: str | os.PathLike | None = None,
         leave_within: float | None = None,
         set: Iterable[str] = (),
         device: str = "auto",
         buffers: str = "first",
         state: Mapping[str, Any] | None = None) -> "Fleet":
    """Joins a fleet with these players and waits for the first round.

    config: path of the run's configuration, the same at all peers, whose game is
      ``caller {}``; None: one with all defaults.
    players: modules by name, or dictionaries of tensors, in one order at all
      peers.  All peers begin with the same parameters: seed torch, the same at
      all peers, before the modules are made.
    topology: HOST:PORT of the topology service.  ``python -m gossamer.run`` sets
      it, and id, for the programs that it starts.
    id, listen, advertise, run_dir, certs, insecure, resume, replay,
      leave_within, set: as the options of gossamer-peer, which
      ``gossamer-peer --help`` explains.
    device: where parameters on a GPU are mixed: "auto", on that GPU, which takes
      the memory of several copies there, or "cpu", by a copy in the host's
      memory.
    buffers: what becomes of the modules' buffers (batch statistics): "first", a
      peer that joins later begins with those of a member, and all are each
      peer's own from then on; "averaged", those of floats are mixed as
      parameters are; "local", no other peer gets them.
    state: objects with state_dict() and load_state_dict() by name, such as
      optimizers: saved with checkpoints, and given to peers that join later.
      Tensors, numbers, texts and containers of those.

    Raises PlayersError for players that cannot be mixed, ValueError for options
    that cannot be used, FleetError if the fleet refuses this peer or cannot be
    reached.
    """
    if buffers not in ("first", "averaged", "local"):
        raise ValueError(f'buffers is "{buffers}"; take first, averaged or local')
    if device not in ("auto", "cpu"):
        raise ValueError(f'device is "{device}"; take auto or cpu')
    given = {name: str(value) for name, value in [
        ("--config", config), ("--topology", topology), ("--id", id),
        ("--listen", listen), ("--advertise", advertise), ("--run-dir", run_dir),
        ("--certs", certs), ("--replay", replay),
        ("--leave-within", leave_within)] if value is not None}
    # python -m gossamer.run says what the programs that it starts do not.
    options = {**json.loads(os.environ.get(_OPTIONS, "{}")), **given}
    if "--topology" not in options:
        raise ValueError("no topology service: give topology=\"HOST:PORT\", or "
                         "start this program by python -m gossamer.run")
    resume = options.pop("--resume", False) or resume
    with contextlib.ExitStack() as files:
        if "--config" not in options:
            file = pathlib.Path(files.enter_context(
                tempfile.TemporaryDirectory())) / "run.textproto"
            file.write_text("game { caller {} }\n")
            options["--config"] = str(file)
        words = [word for option in options.items() for word in option]
        words += [word for change in set for word in ("--set", change)]
        words += ["--insecure"] * insecure + ["--resume"] * resume
        return Fleet(words, Players(players, buffers), device, buffers,
                     state or {})


class Fleet:
    """A peer of a fleet; made by join().

    As a context manager it leaves at the end of the block: after an exception
    in good order, so that the others go on.
    """

    def __init__(self, options, players, device, buffers, state):
        self._peer = None
        self._lock = threading.Lock()
        self._players = players
        self._device = device
        self._flat = torch.empty(0)
        self._buffers = buffers
        self._state = dict(state)
        for name, thing in self._state.items():
            if not (hasattr(thing, "state_dict") and
                    hasattr(thing, "load_state_dict")):
                raise TypeError(f"state: {name} is a {type(thing).__name__}, "
                                "which has no state_dict() and "
                                "load_state_dict()")
        self._try_state()
        self._over = False
        self._leaves = False
        self._topology = options[options.index("--topology") + 1]
        texts = [o.encode() for o in options]
        tensors = (_library.Tensor * len(players.entries))()
        shapes = []
        for t, entry in zip(tensors, players.entries):
            shape = (ctypes.c_int64 * len(entry.shape))(*entry.shape)
            shapes.append(shape)
            t.player, t.name = entry.player.encode(), entry.label.encode()
            t.shape, t.rank = shape, len(entry.shape)
        peer = library.gossamer_open(
            (ctypes.c_char_p * len(texts))(*texts), len(texts), tensors,
            len(tensors))
        if not peer:
            raise ValueError(_library.error())
        self._peer = ctypes.c_void_p(peer)
        # A program that ends without leaving would be missed as one that died.
        atexit.register(self.close)
        self._hooks = _library.State(
            None, _library.SAVE(self._save), _library.LOAD(self._load))
        self._failure = None
        self._saved = None
        self._resumes = "--resume" in options
        self._waiting = True
        try:
            self._flat = players.attach(self._use_memory)
            _check(library.gossamer_set_state(self._peer,
                                              ctypes.byref(self._hooks)))
            self._settle()
            with self._on_device():
                _check(library.gossamer_start(self._peer))
            self._await_turn()
        except BaseException:
            self.close()
            raise

    def mix(self, **losses: "float | torch.Tensor") -> bool:
        """Ends the step and waits for the next: a snapshot goes out, and what is
        due of the neighbours comes in.

        losses: of the players, by name, for people to look at.

        Returns True while the run goes on, False after its last round.  Raises
        PlayersError for parameters that are not finite or have been replaced,
        before anything of the step is sent; the step can be mended then, and
        mixed again.
        """
        if not self._lock.acquire(blocking=False):
            raise FleetError("mix: another thread is in a call of this fleet, "
                             "which is for one thread at a time")
        try:
            self._alive("mix")
            if self._over:
                return False
            # A wait that an exception ended is taken up: the step was given.
            if self._waiting:
                return self._await_turn()
            if losses:
                self._note(losses)
            self._players.check()
            self._players.give()
            self._settle()
            with self._on_device():
                _check(library.gossamer_mix(self._peer), invalid=PlayersError)
            self._waiting = True
            return self._await_turn()
        finally:
            self._lock.release()

    def leave(self) -> None:
        """Leaves in good order: the others go on without this peer."""
        self._alive("leave")
        self._leaves = True
        _check(library.gossamer_leave(self._peer))
        with self._lock:
            if not self._over:
                self._give_step()
                self._await_turn()

    def stop(self) -> None:
        """Asks the whole fleet to stop at a round that all agree on; go on
        mixing until mix() is False."""
        self._alive("stop")
        _check(library.gossamer_stop(self._peer))

    def close(self) -> None:
        """Leaves if need be.  The players keep the parameters that they have."""
        if self._peer is None:
            return
        atexit.unregister(self.close)
        library.gossamer_leave(self._peer)
        # A thread that is in mix() comes out of it: this peer leaves.
        with self._lock:
            peer, self._peer = self._peer, None
            if peer is None:
                return
            # The peer ends whatever torch says of the step that is given up.
            try:
                if not self._over:
                    self._give_step()
            finally:
                while library.gossamer_wait(peer, _LOOK) in (_library.AGAIN,
                                                             _library.STATE):
                    pass
                with self._on_device():
                    library.gossamer_close(peer)
                taken, self._over = self._over, True
                if not taken:
                    self._players.take()

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def id(self) -> int:
        """This peer's number, from 1."""
        return self._status().id

    @property
    def round(self) -> int:
        """The round of the step in hand, from 1."""
        return self._status().round

    @property
    def rounds(self) -> int:
        """The rounds of the run."""
        return self._status().rounds

    @property
    def peers(self) -> int:
        """The peers that founded the fleet."""
        return self._status().peers

    @property
    def members(self) -> int:
        """The members of the fleet now."""
        return self._status().members

    @property
    def over(self) -> bool:
        """Whether the run is over for this peer."""
        return self._over

    def shard(self, dataset: torch.utils.data.Dataset, *, batch_size: int = 1,
              shuffle: bool = True, **loader: Any) -> Iterator[Any]:
        """Batches of this peer's part of `dataset`, epoch after epoch, until
        the run is over.

        Peer i of the founders has the examples i - 1, i - 1 + peers, ...; one
        that joins later shares those of peer (id - 1) modulo peers.  Their order
        follows the run's seed; a peer that goes on from a checkpoint begins an
        epoch of another order.  `loader` goes to torch.utils.data.DataLoader.
        """
        if not hasattr(dataset, "__len__"):
            raise ValueError(f"shard: a {type(dataset).__name__} has no length; "
                             "give loop() a loader of this peer's own part")
        status = self._status()
        own = range((status.id - 1) % status.peers, len(dataset), status.peers)
        if len(own) == 0:
            raise ValueError(f"shard: {len(dataset)} examples are too few for "
                             f"{status.peers} peers")
        generator = torch.Generator()
        generator.manual_seed((status.seed * 1_000_003 + status.id +
                               1_000_000_007 * (status.round - 1)) % 2**63)
        return self.loop(torch.utils.data.DataLoader(
            torch.utils.data.Subset(dataset, own), batch_size=batch_size,
            shuffle=shuffle, generator=generator, **loader))

    def loop(self, loader: Iterable[Any]) -> Iterator[Any]:
        """What `loader` gives, again and again, until the run is over."""
        while not self._over:
            empty = True
            for batch in loader:
                empty = False
                yield batch
                if self._over:
                    return
            if empty:
                raise ValueError(
                    "loop: the loader gives no batch" +
                    (" any more: an iterator can be read once, so give a "
                     "DataLoader or a list" if iter(loader) is loader else ""))

    def _use_memory(self, vector):
        """None if the runtime mixes `vector` where it lies, else why not."""
        if vector.device.type == "cpu":
            _check(library.gossamer_use_memory(self._peer, vector.data_ptr()))
            return None
        if self._device == "cpu":
            return "device is cpu"
        code = library.gossamer_use_cuda_memory(
            self._peer, vector.data_ptr(), vector.device.index)
        return None if code == _library.OK else _library.error()

    def _settle(self):
        """What torch has been asked to do with the vector is done."""
        if self._flat.device.type == "cuda":
            torch.cuda.synchronize(self._flat.device)

    def _on_device(self):
        """The runtime makes the vector's device the thread's, which is the
        program's to choose."""
        if self._flat.device.type == "cuda":
            return torch.cuda.device(self._flat.device)
        return contextlib.nullcontext()

    def _alive(self, what):
        if self._peer is None:
            raise FleetError(f"{what}: this fleet has been closed")

    def _status(self):
        self._alive("status")
        status = _library.Status()
        _check(library.gossamer_status_of(self._peer, ctypes.byref(status)))
        return status

    def _note(self, losses):
        names = self._players.names
        unknown = losses.keys() - names
        if unknown:
            raise ValueError(f"mix: there is no player {sorted(unknown)[0]}; the "
                             f"players are {', '.join(names)}")
        values = (ctypes.c_double * len(names))(
            *[_number(losses.get(name, float("nan"))) for name in names])
        _check(library.gossamer_losses(self._peer, values, len(names)))

    def _give_step(self):
        """What the program has done in its turn, if it is its turn."""
        if not self._waiting:
            self._players.give()
            self._settle()
            self._waiting = True

    def _await_turn(self):
        # Python looks at signals between two waits, so that Ctrl-C works.
        code = _library.AGAIN
        told = float("inf") if self._leaves else time.monotonic() + _LONG_WAIT
        while code == _library.AGAIN:
            code = library.gossamer_wait(self._peer, _LOOK)
            if code == _library.AGAIN and time.monotonic() > told:
                told = float("inf")
                self._tell_of_wait()
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
        if code == _library.STATE:
            _check(code)
        self._players.take()
        self._waiting = False
        self._over = code != _library.TURN
        _check(code)
        return not self._over

    def _tell_of_wait(self):
        status = self._status()
        what = (f"peer {status.id} has waited for {_LONG_WAIT} s after round "
                f"{status.round}" if status.round else
                f"this peer has waited for {_LONG_WAIT} s for the first round")
        print(f"gossamer: {what}, for a checkpoint, or for a peer that is slow, "
              "hangs before its mix(), or is not there; gossamer status "
              f"--topology {self._topology} shows the rounds of all",
              file=sys.stderr, flush=True)

    def _collect_state(self):
        return {"state": {name: thing.state_dict()
                          for name, thing in self._state.items()},
                "buffers": self._players.local_buffers()}

    def _try_state(self):
        """A state that cannot be read back is found now, not when it is needed.
        A state that needs the fleet is tried when it is saved."""
        try:
            kept = self._collect_state()
        except Exception:
            return
        _read(_bytes_of(kept))

    def _save(self, context, data, size):
        try:
            state = _bytes_of(self._collect_state())
            if self._saved is None:
                _read(state)
            # It stays until the next call, as the interface asks.
            self._saved = state
            data[0] = ctypes.cast(ctypes.c_char_p(self._saved),
                                  ctypes.c_void_p)
            size[0] = len(self._saved)
            return 0
        except BaseException as failure:  # none may cross the interface
            self._failure = failure
            return 1

    def _load(self, context, data, size):
        try:
            kept = _read(ctypes.string_at(data, size))
            if kept["state"].keys() != self._state.keys():
                raise ValueError(
                    f"the state that was saved has {_words(kept['state'])}, and "
                    f"join was given {_words(self._state)}: give it the same "
                    "names")
            own = self._players.local_buffers()
            # A peer that resumes gets what it saved; one that joins, a member's.
            if self._resumes or self._buffers != "local":
                with torch.no_grad():
                    for name, value in kept["buffers"].items():
                        own[name].copy_(value)
            for name, thing in self._state.items():
                thing.load_state_dict(kept["state"][name])
            return 0
        except BaseException as failure:
            self._failure = failure
            return 1
