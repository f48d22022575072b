"""Runs a training program as a fleet on this machine, as torchrun does.

    python -m gossamer.run --peers 4 train.py --epochs 3

Starts a topology service and as many copies of the program, each of which joins
with gossamer.join(players=...).  GOSSAMER_RANK numbers them, from 0.  The first
Ctrl-C stops the fleet at a round that all agree on; a second one ends it at once.
"""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Seconds: for the service to begin, and for the programs to end after a signal.
_START = 10
_GRACE = 15

_EXAMPLES = """examples:
  python -m gossamer.run --peers 4 train.py
  python -m gossamer.run --config run.textproto --set rounds=500 train.py --lr 2e-4
  python -m gossamer.run --peers 8 --set mixing.graph=torus -m mypackage.train
  python -m gossamer.run --run-dir runs/mine --resume train.py
  python -m gossamer.run --run-dir runs/mine --overwrite train.py

The folder keeps the configuration, which --resume takes up.

Exit status: 0 if all programs ended with 0, else the first other one; 2 for a
wrong command line; 130 after a signal before the first round.
"""


def program(name):
    """A program of this package, or of GOSSAMER_BIN, or of the path."""
    folders = [os.environ.get("GOSSAMER_BIN"),
               str(pathlib.Path(__file__).parent / "bin")]
    for folder in filter(None, folders):
        found = pathlib.Path(folder) / name
        if found.is_file():
            return str(found)
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"gossamer.run: {name} is not installed: install the "
                         "wheel again, or let GOSSAMER_BIN name its folder")
    return found


# Of prctl(2): the signal that a process gets when the one that began it ends.
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with(launcher):
    """What a child does before it begins: it ends with its launcher."""
    def prepare():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != launcher:
            os.kill(os.getpid(), signal.SIGTERM)
    return prepare


def _say(text):
    try:
        print(f"gossamer.run: {text}", file=sys.stderr, flush=True)
    except OSError:  # the terminal has gone
        pass


def _differences(before, now):
    """Lines of two configurations that differ, in short."""
    old, new = before.splitlines(), now.splitlines()
    return ", ".join([f"now {line.strip()}" for line in new if line not in old] +
                     [f"before {line.strip()}" for line in old
                      if line not in new])


def _arguments(argv):
    parser = argparse.ArgumentParser(
        prog="python -m gossamer.run", description=__doc__.split("\n\n")[0],
        epilog=_EXAMPLES, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, metavar="N",
                        help="peers of the fleet (default: the configuration's)")
    parser.add_argument("--config", metavar="FILE",
                        help="the run's configuration, whose game is caller {} "
                        "(default: all defaults)")
    parser.add_argument("--set", action="append", default=[],
                        metavar="KEY=VALUE",
                        help="over the file: mixing.codec=innov-int8")
    parser.add_argument("--run-dir", metavar="DIR",
                        help="folder of logs, metrics and checkpoints (default: "
                        "runs/train for train.py)")
    over = parser.add_mutually_exclusive_group()
    over.add_argument("--resume", action="store_true",
                      help="go on from the checkpoints of the folder")
    over.add_argument("--overwrite", action="store_true",
                      help="replace the run that is in the folder")
    parser.add_argument("-m", action="store_true", dest="module",
                        help="the program is a module")
    parser.add_argument("program", help="the program to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER,
                        help="arguments of the program")
    arguments = parser.parse_args(argv)
    if arguments.peers is not None and not 1 <= arguments.peers <= 64:
        parser.error(f"--peers {arguments.peers}: on one machine 1 to 64")
    if not arguments.module and not os.path.isfile(arguments.program):
        parser.error(f"{arguments.program}: no such file")
    return arguments


class Fleet:
    """The processes of a local fleet."""

    def __init__(self, arguments):
        # Whole paths: a program may change its folder before it joins.
        name = arguments.program.rpartition(".")[2] if arguments.module \
            else pathlib.Path(arguments.program).stem
        self._run_dir = pathlib.Path(arguments.run_dir or
                                     f"runs/{name}").resolve()
        self._arguments = arguments
        self._programs, self._printers = [], []
        self._service = None
        self._address = None
        self._set = list(arguments.set)
        if arguments.peers is not None:
            self._set.append(f"peers={arguments.peers}")
        self._lock = None
        self._ended = False  # by a signal before there were rounds

    def _take_folder(self):
        """Locks the folder.  Returns why a fleet cannot begin there, or None."""
        folder, overwrite = self._run_dir, self._arguments.overwrite
        if self._arguments.resume and not self.has_checkpoint():
            return f"--resume: there is no checkpoint in {folder}"
        if self._peers() and not (self._arguments.resume or overwrite):
            return (f"{folder} has a run already; take --resume to go on, "
                    "--overwrite to replace it, or another --run-dir")
        if overwrite and self._peers() and not self._kept().exists():
            return (f"--overwrite: {folder} has no config.textproto, so it may be "
                    "no run's folder; take another --run-dir")
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"{folder}: another fleet is running in this folder"
        except OSError as error:
            _say(f"{folder} cannot be locked ({error.strerror}): begin no second "
                 "fleet there")
        return None

    def _kept(self):
        return self._run_dir / "config.textproto"

    def _peers(self):
        return [folder for folder in self._run_dir.glob("peer-*")
                if folder.name[5:].isdigit()]

    def has_checkpoint(self):
        """Whether a run can go on in the folder."""
        return any(self._run_dir.glob("peer-*/checkpoints/round-*"))

    def _settle_config(self):
        """Returns the configuration with all defaults, and an error or None."""
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as defaults:
            defaults.write("game { caller {} }\n")
            defaults.flush()
            config = self._arguments.config or (
                self._kept() if self._arguments.resume and self._kept().exists()
                else defaults.name)
            changes = [word for change in self._set
                       for word in ("--set", change)]
            asked = subprocess.run([program("gossamer"), "config", "show",
                                    "--config", str(config), *changes],
                                   capture_output=True, text=True)
        return asked.stdout, asked.stderr.strip() if asked.returncode else None

    def _begin_run(self, text):
        """Writes the configuration into the folder, in the place of an older run
        unless this one goes on.  Returns its path."""
        kept = self._kept()
        if not self._arguments.resume:
            for old in self._peers():
                shutil.rmtree(old)
        elif kept.exists() and kept.read_text() != text:
            _say("the configuration is not that of the run, and checkpoints fit "
                 "the run's alone: " + _differences(kept.read_text(), text))
            kept = self._run_dir / "resumed.textproto"
        kept.write_text(text)
        return str(kept)

    def start(self):
        """Returns an error, or None."""
        error = self._take_folder()
        if error:
            return error
        text, error = self._settle_config()
        if error:
            return error
        try:
            config = self._begin_run(text)
        except OSError as error:
            return str(error)
        peers = next(int(line.split(":")[1]) for line in text.splitlines()
                     if line.startswith("peers:"))
        port_file = self._run_dir / "topology.port"
        port_file.unlink(missing_ok=True)
        # This service knows nothing of that of an earlier start.
        state = self._run_dir / ".topology"
        shutil.rmtree(state, ignore_errors=True)
        log = open(self._run_dir / "topology.log", "w")
        self._service = subprocess.Popen(
            [program("gossamer-topology"), "--config", config, "--listen",
             "127.0.0.1:0", "--port-file", str(port_file), "--state", str(state),
             "--exit-when-finished"],
            stdout=log, stderr=log, start_new_session=True,
            preexec_fn=_end_with(os.getpid()))
        limit = time.monotonic() + _START
        while not (port_file.exists() and port_file.read_text().strip()):
            if self._service.poll() is not None or time.monotonic() > limit:
                return ("the topology service did not start: " +
                        (self._run_dir / "topology.log").read_text().strip())
            time.sleep(0.02)
        self._address = "127.0.0.1:" + port_file.read_text().strip()
        options = {"--topology": self._address, "--config": config,
                   "--run-dir": str(self._run_dir),
                   "--resume": self._arguments.resume}
        command = [sys.executable, *(["-m"] if self._arguments.module else []),
                   self._arguments.program, *self._arguments.arguments]
        for number in range(1, peers + 1):
            environment = dict(
                os.environ, PYTHONUNBUFFERED="1",
                GOSSAMER_RANK=str(number - 1),
                GOSSAMER_OPTIONS=json.dumps({**options, "--id": str(number)}))
            # All programs together have as many threads as there are processors.
            environment.setdefault(
                "OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // peers)))
            # Sessions of their own keep Ctrl-C to this process.
            child = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
                # A program may print what is no text.
                encoding="utf-8", errors="replace",
                # They hold the lock, too.
                pass_fds=[self._lock.fileno()],
                preexec_fn=_end_with(os.getpid()))
            self._programs.append(child)
            printer = threading.Thread(target=self._print, args=(number, child),
                                       daemon=True)
            printer.start()
            self._printers.append(printer)
        _say(f"{peers} peers; to look at them: gossamer status --topology "
             f"{self._address}")
        return None

    def _print(self, number, child):
        path = self._run_dir / f"program-{number}.log"
        with open(path, "w", encoding="utf-8") as log:
            # A program whose lines nobody took would wait for ever: neither a
            # full disk nor a terminal that has gone ends this.
            for line in child.stdout:
                with contextlib.suppress(OSError):
                    log.write(line)
                    log.flush()
                with contextlib.suppress(OSError):
                    sys.stdout.write(f"[{number}] {line}")
                    sys.stdout.flush()

    def stop(self):
        """At a round that all agree on; at once before there are rounds."""
        if self._has_begun():
            subprocess.run([program("gossamer"), "stop", "--topology",
                            self._address], capture_output=True)
        else:
            self._ended = True
            self.end()

    def end(self):
        for child in [*self._programs, *filter(None, [self._service])]:
            if child.poll() is None:
                child.terminate()
        limit = time.monotonic() + _GRACE
        for child in [*self._programs, *filter(None, [self._service])]:
            try:
                child.wait(max(0.1, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()

    def wait(self):
        """Returns the exit status of the fleet."""
        worst = 0
        waiting = dict(enumerate(self._programs, 1))
        while waiting:
            for number, child in list(waiting.items()):
                status = child.poll()
                if status is None:
                    continue
                del waiting[number]
                if status == 0 or self._ended:
                    continue
                worst = worst or (status if status > 0 else 128 - status)
                begun = self._has_begun()
                _say(f"program {number} ended with status {status}" +
                     (" before the fleet had begun" if not begun else
                      "; the others go on" if len(waiting) > 1 else ""))
                # The others would wait for it for ten minutes.
                if not begun:
                    self.end()
                    waiting.clear()
                    break
            time.sleep(0.05)
        self._finish_printing()
        return 130 if self._ended else worst

    def _has_begun(self):
        status = subprocess.run([program("gossamer"), "status", "--topology",
                                 self._address, "--json"], capture_output=True,
                                text=True)
        if status.returncode != 0:
            return True
        return json.loads(status.stdout)["view_epoch"] > 0

    def _finish_printing(self):
        for printer in self._printers:
            printer.join(5)


def main(argv=None):
    arguments = _arguments(argv)
    fleet = Fleet(arguments)
    asked = []

    def on_signal(number, frame):
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt
        _say("stopping the fleet; again to end it at once")
        threading.Thread(target=fleet.stop, daemon=True).start()

    def interrupt(number, frame):
        raise KeyboardInterrupt

    def on_signals(handler):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup ignores the last one, which stays so.
            if (number != signal.SIGHUP or
                    signal.getsignal(number) != signal.SIG_IGN):
                signal.signal(number, handler)

    try:
        # Until there is a fleet to stop, a signal ends what has begun.
        on_signals(interrupt)
        error = fleet.start()
        if error:
            _say(error)
            return 2
        on_signals(on_signal)
        status = fleet.wait()
        if asked and fleet.has_checkpoint():
            _say("stopped; --resume goes on from the checkpoints")
        return status
    except KeyboardInterrupt:
        return 130
    finally:
        fleet.end()


if __name__ == "__main__":
    sys.exit(main())
