"""The tensors of a program's players, and one flat vector of floats that holds
them all.

A tensor becomes a view of the flat vector where it can, and mixing it costs no
copy.  The flat vector lies on the GPU if all tensors do and the runtime can mix
there, else in the host's memory: tensors of a device then become views of one
vector there, its mirror, which is copied as a whole at every mix.  A tensor whose
numbers are not float32, or that isn't laid out row by row, is copied by itself,
and so is a GPU's whose place in the vector is not aligned.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Iterable, Iterator

import torch

log = logging.getLogger("gossamer")

# For tests without another device: the host's tensors are mirrored, too.
_MIRROR_EVERYTHING = False

HALVES = (torch.float16, torch.bfloat16)

# Floats at a multiple of which a GPU's libraries read a tensor: those behind
# cuBLASLt and cuDNN take 16 bytes for granted, and a misaligned address ends the
# program's context.
_ALIGNMENT = 4


class PlayersError(ValueError):
    """Players that cannot be mixed, or are not what they were at the join."""


@dataclasses.dataclass
class Entry:
    """A tensor of a player and its place in the flat vector."""
    player: str
    name: str
    tensor: torch.Tensor
    shape: tuple
    offset: int = 0
    home: torch.Tensor | None = None  # the vector that it is a view of

    @property
    def whole_name(self):
        return f"{self.player}.{self.name}"

    @property
    def label(self):
        """The name that peers compare: numbers of another kind than the
        vector's are a part of it."""
        kind = self.tensor.dtype
        return self.name if kind == torch.float32 else f"{self.name} ({kind})"


def _plain(name):
    """As it was before torch.compile, which some peers may do without."""
    return name.replace("_orig_mod.", "")


def _named(player, owner, buffers):
    """The tensors of one player: of a module, a dictionary or pairs."""
    if isinstance(owner, torch.nn.Module):
        # A tensor under two names is there once, so that tied ones stay tied.
        for name, parameter in owner.named_parameters():
            yield _plain(name), parameter
        if buffers == "averaged":
            for name, buffer in owner.named_buffers():
                if buffer.is_floating_point():
                    yield _plain(name), buffer
        return
    pairs = owner.items() if isinstance(owner, dict) else owner
    wrong = owner
    if isinstance(pairs, Iterable):
        for wrong in pairs:
            if not (isinstance(wrong, tuple) and len(wrong) == 2):
                break
            yield wrong
        else:
            return
    raise PlayersError(
        f"player {player}: give a torch.nn.Module, or pairs of a name "
        "and a tensor, not " + type(wrong).__name__)


def _refuse(entry):
    t = entry.tensor
    if not torch.is_tensor(t):
        return f"is a {type(t).__name__}, not a tensor"
    if t.dtype not in (torch.float32, *HALVES):
        return (f"is {t.dtype}; float32 can be mixed, and float16 and bfloat16 "
                "by a float32 master")
    if t.layout != torch.strided:
        return f"is {t.layout}; only dense tensors can be mixed"
    if t.is_meta:
        return "is on the device meta and has no values yet"
    return None


def _part(vector, entry):
    end = entry.offset + entry.tensor.numel()
    return vector[entry.offset:end].view(entry.shape)


def _window(vector, entry):
    """The same memory as _part, as a tensor with a storage of its own: torch
    saves whole storages, and one player's are not to bring all the others'."""
    # torch exports a tensor of its present device only.
    with torch.cuda.device(vector.device) if vector.is_cuda else contextlib.nullcontext():
        return torch.from_dlpack(_part(vector, entry))


def _why_copied(entry):
    """Why a tensor cannot become a view of the vector, or None."""
    t = entry.tensor
    if t.dtype in HALVES:
        return str(t.dtype)
    if not t.is_contiguous():
        return "not laid out row by row"
    if (t.is_cuda or _MIRROR_EVERYTHING) and entry.offset % _ALIGNMENT != 0:
        return "behind a tensor of odd size, so not aligned for a GPU"
    return None


class Players:
    """The players of a fleet's program.  It knows nothing of peers or rounds."""

    def __init__(self, players, buffers):
        if not players or not hasattr(players, "keys"):
            what = (f"players is a {type(players).__name__}" if players else
                    "there are no players")
            raise PlayersError(
                f'{what}; give players={{"G": generator, "D": discriminator}}')
        # An iterator of pairs can be read once.
        self._owners = {name: list(owner) if isinstance(owner, Iterator) else owner
                        for name, owner in dict(players).items()}
        self._buffers = buffers
        self.entries = self._collect()
        seen = {}
        offset = 0
        for entry in self.entries:
            why = _refuse(entry)
            if why:
                raise PlayersError(f"{entry.whole_name} {why}")
            other = seen.setdefault(id(entry.tensor), entry)
            if other is not entry:
                raise PlayersError(
                    f"{entry.whole_name} is the same tensor as "
                    f"{other.whole_name}: a tensor is one player's")
            entry.offset = offset
            offset += entry.tensor.numel()
        self.size = offset
        self._flat = None
        self._mirrors, self._spans, self._copied = {}, [], []

    def _collect(self):
        entries = []
        for player, owner in self._owners.items():
            for name, tensor in _named(player, owner, self._buffers):
                shape = tuple(tensor.shape) if torch.is_tensor(tensor) else ()
                entries.append(Entry(player, name, tensor, shape))
        return entries

    @property
    def names(self):
        return list(dict.fromkeys(e.player for e in self.entries))

    def attach(self, use_memory):
        """Moves the tensors into the flat vector, and returns it.

        use_memory: gives a vector to the runtime, and returns None or why it
          cannot be mixed where it lies; the host's memory always can.

        Its memory is torch's: whatever still views it keeps it.
        """
        self._flat, why_mirrored = self._vector(use_memory)
        self._mirrors = {}
        copied = {}
        with torch.no_grad():
            for entry in self.entries:
                t = entry.tensor
                _part(self._flat, entry).copy_(t)
                if why := _why_copied(entry):
                    copied.setdefault(why, []).append(entry.whole_name)
                    continue
                entry.home = self._home(t.device)
                window = _window(entry.home, entry)
                window.copy_(t)
                t.data = window
        self._copied = [e for e in self.entries if e.home is None]
        self._spans = [(mirror, *span) for mirror in self._mirrors.values()
                       for span in self._spans_of(mirror)]
        for device in self._mirrors:
            log.warning("the parameters on %s are copied through the host's "
                        "memory at every mix: %s", device, why_mirrored)
        for why, names in copied.items():
            log.warning("%d tensors are copied at every mix (%s): %s%s",
                        len(names), why, ", ".join(names[:3]),
                        " ..." if len(names) > 3 else "")
        return self._flat

    def _vector(self, use_memory):
        """The flat vector, and why it is not where the tensors are."""
        devices = sorted({str(e.tensor.device) for e in self.entries})
        why = "they are on " + " and ".join(devices)
        if len(devices) == 1 and devices[0].startswith("cuda"):
            vector = torch.zeros(self.size, device=devices[0])
            why = use_memory(vector)
            if why is None:
                return vector, why
        vector = torch.zeros(self.size)
        use_memory(vector)
        return vector, why

    def _home(self, device):
        if device == self._flat.device and not _MIRROR_EVERYTHING:
            return self._flat
        if device not in self._mirrors:
            self._mirrors[device] = torch.empty(self.size, device=device)
        return self._mirrors[device]

    def _spans_of(self, mirror):
        """Begins and ends of the parts of the flat vector that it mirrors."""
        spans = []
        for e in self.entries:
            if e.home is not mirror:
                continue
            end = e.offset + e.tensor.numel()
            if spans and spans[-1][1] == e.offset:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((e.offset, end))
        return spans

    def check(self):
        """PlayersError if a tensor was replaced since the join."""
        now = self._collect()
        if len(now) != len(self.entries):
            raise PlayersError(
                f"the players have {len(now)} tensors and had "
                f"{len(self.entries)} when they joined: what is mixed is fixed "
                "then")
        for entry, other in zip(self.entries, now):
            # `p.data = ...` keeps the object and moves its memory.
            moved = (entry.home is not None and entry.tensor.numel() > 0 and
                     entry.tensor.data_ptr() !=
                     entry.home.data_ptr() + 4 * entry.offset)
            if (other.tensor is not entry.tensor or moved or
                    tuple(entry.tensor.shape) != entry.shape):
                raise PlayersError(
                    f"{entry.whole_name} was replaced since the join, and what "
                    "replaced it would not be mixed: change tensors in place "
                    "(copy_, load_state_dict, an optimizer's step), and move or "
                    "convert a module before joining")

    def give(self):
        """Copies into the flat vector what is not a view of it."""
        with torch.no_grad():
            for mirror, begin, end in self._spans:
                self._flat[begin:end].copy_(mirror[begin:end])
            for entry in self._copied:
                part, t = _part(self._flat, entry), entry.tensor
                if t.dtype == torch.float32:
                    part.copy_(t)
                else:
                    # The flat vector holds the master: what the tensor has
                    # changed by since it was rounded is added to it.
                    # A master that was not finite is begun anew.
                    rounded = part.to(t.dtype).to(torch.float32)
                    now = t.detach().to(part.device, torch.float32)
                    part.copy_(torch.where(rounded.isfinite(),
                                           part + (now - rounded), now))

    def take(self):
        """Copies back what give() copied."""
        with torch.no_grad():
            for mirror, begin, end in self._spans:
                mirror[begin:end].copy_(self._flat[begin:end])
            for entry in self._copied:
                entry.tensor.copy_(_part(self._flat, entry))

    def local_buffers(self):
        """The buffers that are not mixed, by their names."""
        mixed = {id(e.tensor) for e in self.entries}
        found = {}
        for player, owner in self._owners.items():
            if isinstance(owner, torch.nn.Module):
                for name, buffer in owner.named_buffers():
                    if id(buffer) not in mixed:
                        found[f"{player}.{_plain(name)}"] = buffer
        return found
