#!/usr/bin/env python3
"""Peers train while unauthenticated clients, and members with certificates, flood a peer and the
topology service with frames of HTTP/2 that bring nothing.

usage: flood_test.py FOLDER_OF_THE_PROGRAMS [unittest arguments]
"""

import json
import shutil
import signal
import socket
import sys
import tempfile
import unittest

import processes_test as processes
from http2_flood import EDGE, KINDS, SERVICE, Flood
from processes_test import Fleet, LIMIT, SYNTHETIC, wait_for

# More memory than before that a process may have once a flood is over.
MORE = 32 << 20
ROUNDS = 10  # how many the fleet goes on for


def memory(process):
    with open(f"/proc/{process.pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    raise AssertionError("a process has ended")


class FloodTest(unittest.TestCase):
    def flooded(self, locked):
        """Floods a peer and the service of a fleet in all ways; each must be
        ended, and the fleet go on."""
        folder = tempfile.mkdtemp(prefix="gossamer_flood_")
        self.addCleanup(shutil.rmtree, folder)
        fleet = Fleet(folder, rounds=1000000, locked=locked,
                      game=SYNTHETIC.format(100_000))
        self.addCleanup(fleet.kill)
        fleet.start()
        wait_for(lambda: fleet.round_of(1) > ROUNDS)
        status = fleet.status(*fleet.door("peer-2"))
        address = json.loads(status.stdout)["peers"][0]["address"]
        doors = ((int(address.rsplit(":", 1)[1]), EDGE),
                 (fleet.port, SERVICE))
        programs = (fleet.processes[1], fleet.service)
        before = [memory(p) for p in programs]
        certs = fleet.certs_of("peer-3") if locked else None
        for door, (port, path) in enumerate(doors):
            for k, kind in enumerate(KINDS):
                # A host is banned after its flood.
                source = f"127.0.{1 + door}.{1 + k}"
                if locked:
                    # Without a certificate no flood begins, and no host is
                    # banned: the next one is of the same host.
                    flood = Flood("127.0.0.1", port, kind, path, certs, source,
                                  shows=False)
                    self.assertTrue(flood.run(LIMIT), f"{kind} at {path}")
                flood = Flood("127.0.0.1", port, kind, path, certs, source)
                self.assertTrue(flood.run(LIMIT), f"{kind} at {path}")
                at = fleet.round_of(2)
                wait_for(lambda: fleet.round_of(2) > at + ROUNDS)
            # The host of a flood gets no connection for a minute.
            with socket.create_connection(("127.0.0.1", port), LIMIT,
                                          (f"127.0.{1 + door}.1", 0)) as again:
                self.assertEqual(again.recv(1), b"")
        for program, was in zip(programs, before):
            wait_for(lambda: memory(program) < was + MORE)
        # Of the floods within ten seconds one is told.  Calls that gRPC
        # refuses itself, as newer releases do, are none of the transport's.
        wait_for(lambda: fleet.told(1, "connection_refused") >= 1)
        self.assertNotIn("edge_down", fleet.events(1))
        fleet.processes[1].send_signal(signal.SIGINT)
        self.assertEqual(fleet.wait(), [0, 0, 0])

    def test_unauthenticated_clients(self):
        self.flooded(locked=False)

    def test_members(self):
        self.flooded(locked=True)


if __name__ == "__main__":
    processes.BIN = sys.argv.pop(1)
    unittest.main()
