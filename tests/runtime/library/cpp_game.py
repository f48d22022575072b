"""The C++ example outside the tree, and fleets of its program."""

import json
import struct
import subprocess
import time

PEERS = 4


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True,
                          capture_output=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}"
                             f"{done.stderr}")
    return done.stdout


def state(checkpoint):
    """The vectors of a checkpoint by name, as bytes."""
    file = (checkpoint / "state.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", file[:8])
    places = json.loads(file[8:8 + size])
    return {name: file[8 + size:][slice(*place["data_offsets"])]
            for name, place in places.items() if name != "__metadata__"}


def build(tree, source, folder):
    """Installs the library of a build into folder/prefix, and builds the example
    against it.  Returns the program."""
    run("cmake", "--install", tree, "--component", "library", "--prefix",
        folder / "prefix")
    # A copy, so that nothing of the tree can be included.
    run("cp", "-r", source / "deploy/examples/cpp", folder / "example")
    run("cmake", "-S", folder / "example", "-B", folder / "game", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={folder}/prefix")
    run("cmake", "--build", folder / "game")
    return folder / "game/game"


class Fleet:
    """A service and peers of a program."""

    def __init__(self, tree, folder, program, config, *options, peers=PEERS):
        self.folder = folder
        self.program, self.options = program, options
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "run.textproto"
        self.config.write_text(config)
        self.port = self.folder / "port"
        self.port.unlink(missing_ok=True)
        self.service = subprocess.Popen(
            [tree / "bin/gossamer-topology", "--config", self.config,
             "--listen", "127.0.0.1:0", "--port-file", self.port, "--state",
             self.folder / "topology", "--exit-when-finished",
             # A stop is three of them ahead, which is not to be beyond the end.
             "--heartbeat", "0.2"],
            stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 20
        while not self.port.exists() or not self.port.read_text().strip():
            assert time.monotonic() < limit, "no service"
            time.sleep(0.02)
        self.address = "127.0.0.1:" + self.port.read_text().strip()
        self.peers = []
        for _ in range(peers):
            self.start()

    def start(self):
        """Starts one more peer, which has the next id."""
        self.peers.append(subprocess.Popen(
            [self.program, "--topology", self.address, "--config", self.config,
             "--id", str(len(self.peers) + 1), "--run-dir", self.folder,
             *self.options], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE))
        return self.peers[-1]

    def end(self, without=None):
        """Output, errors and status of all peers but one that has ended."""
        try:
            ends = [(p.communicate(timeout=120), p.returncode)
                    for i, p in enumerate(self.peers) if i != without]
        finally:
            for p in [*self.peers, self.service]:
                p.kill()
                p.wait()
        return ends


