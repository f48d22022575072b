#!/usr/bin/env python3
"""Runs a command, and sends it SIGTERM when the cloud gives notice that this
machine will be taken away.

    deploy/preemption.py --cloud gcp -- gossamer-peer --topology ...

A peer leaves in good order at SIGTERM.  Asks the cloud's metadata service every
two seconds; what it does not answer in time is no notice.  SIGTERM, SIGINT,
SIGHUP and SIGQUIT to this program are passed on, once where a terminal or systemd
sends them to all processes of a group: the command has a session of its own.  A
SIGTERM before or after the notice is the same one.  The exit code is the
command's (128 + N where signal N ended it).
"""

import argparse
import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

TIMEOUT = 1.0  # seconds of one question
LINK_LOCAL = "http://169.254.169.254"


def ask(url, method="GET", **headers):
    """The answer's text; None where the service has none."""
    request = urllib.request.Request(
        url, method=method,
        headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        # Never by a proxy of the environment: the answer is of this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=TIMEOUT) as answer:
            return answer.read(65536).decode(errors="replace")
    except urllib.error.HTTPError as no:
        if no.code == 404:
            return None
        raise


def aws(base):
    token = ask(base + "/latest/api/token", "PUT",
                X_aws_ec2_metadata_token_ttl_seconds="60")
    return ask(base + "/latest/meta-data/spot/instance-action",
               X_aws_ec2_metadata_token=token or "") is not None


def azure(base):
    answer = ask(base + "/metadata/scheduledevents?api-version=2020-07-01",
                 Metadata="true")
    leaving = set()
    for event in json.loads(answer or "{}").get("Events") or ():
        if event.get("EventType") in ("Preempt", "Terminate"):
            # An answer without a machine is no notice: each of a scale set
            # is told of the evictions of all, and a fleet outlives a peer that
            # goes without one, but not that all of its peers leave.
            leaving.update(str(r).lower() for r in event.get("Resources") or ())
    if not leaving:
        return False
    name = ask(base + "/metadata/instance/compute/name"
               "?api-version=2021-02-01&format=text", Metadata="true")
    if not (name or "").strip():
        raise ValueError("somebody will be evicted, but this machine is not "
                         "told its name")
    return name.strip().lower() in leaving


def gcp(base):
    answer = ask(base + "/computeMetadata/v1/instance/preempted",
                 Metadata_Flavor="Google")
    return (answer or "").strip() == "TRUE"


CLOUDS = {"aws": (aws, LINK_LOCAL), "azure": (azure, LINK_LOCAL),
          "gcp": (gcp, "http://metadata.google.internal")}


class Command:
    """The command and what it has been told.  A second SIGTERM hastens a
    peer's leave, so that it must not hear the notice and the shutdown that
    follows as two."""

    def __init__(self):
        self.child = None
        self.waiting = []  # signals from before it was there
        self.asked = {}  # who was the first to send SIGTERM
        self.followed = False  # somebody has sent it after the notice

    def start(self, argv):
        # Not in our process group: a terminal's ^C reaches it through us alone.
        self.child = subprocess.Popen(argv, start_new_session=True)
        for number in self.waiting:
            self.send(number)

    def send(self, number):
        if self.child is None:
            self.waiting.append(number)
        else:
            self.child.send_signal(number)

    def pass_on(self, number, _):
        if (number == signal.SIGTERM and not self.followed and
                self.asked.setdefault("first", "somebody") == "notice"):
            self.followed = True
            print("preemption: this SIGTERM follows the notice; the command "
                  "has it already; another one is passed on",
                  file=sys.stderr, flush=True)
        else:
            self.send(number)

    def notice(self):
        # On another thread than pass_on: setdefault is one step.
        if self.asked.setdefault("first", "notice") == "notice":
            self.send(signal.SIGTERM)


def watch(command, noticed, base, every, over):
    told = False
    while not over.wait(every):
        try:
            if noticed(base):
                print("preemption: this machine will be taken away; SIGTERM",
                      file=sys.stderr, flush=True)
                command.notice()
                return
            told = False
        except Exception as problem:  # pylint: disable=broad-except
            # In every case: nobody else would hear the next notice.
            if not told:
                print(f"preemption: {base}: {problem}; asking on",
                      file=sys.stderr, flush=True)
            told = True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cloud", choices=sorted(CLOUDS), required=True)
    parser.add_argument("--metadata", metavar="URL",
                        help="where to ask, if not where the cloud says")
    parser.add_argument("--every", type=float, default=2, metavar="SECONDS")
    parser.add_argument("command", nargs="+", metavar="COMMAND",
                        help="what to run, after --")
    options = parser.parse_args()
    if not options.every > 0:
        parser.error(f"--every {options.every}: it must be above 0")
    noticed, base = CLOUDS[options.cloud]
    command = Command()
    # Before it is there: nobody else would end it.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                   signal.SIGQUIT):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, command.pass_on)
    try:
        command.start(options.command)
    except OSError as no:
        sys.exit(f"preemption: {no}")
    over = threading.Event()
    watcher = threading.Thread(target=watch, daemon=True,
                               args=(command, noticed, options.metadata or base,
                                     options.every, over))
    watcher.start()
    code = command.child.wait()
    over.set()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
