#!/usr/bin/env python3
"""How much longer the rounds with a checkpoint or a score are than others, on a
slow disk: real peers in a control group whose writes are limited.

    sudo checkpoint_rounds.py --gossamer build/release/bin/gossamer --folder /var/tmp
    sudo checkpoint_rounds.py --gossamer ... --parameters 82500000 --peers 2 --step 2s
    sudo checkpoint_rounds.py --gossamer ... --config deploy/configs/quickstart.textproto \\
        --data data/emoji-32 --rounds 800 --every 0 --evaluate 100

Prints JSON: of each peer the median round and the longest from the first
checkpoint or score on, in seconds, and their ratio; the part of these rounds that
is longer than 1.5 medians; checkpoints and scores, and those that were left out.
Writes of the disk under --folder are limited by the blkio controller (cgroup
v1), so it needs root.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import run_log

SOURCE = pathlib.Path(__file__).resolve().parents[2]
GROUP = pathlib.Path("/sys/fs/cgroup/blkio/gossamer-checkpoint-rounds")


@contextlib.contextmanager
def slow_disk(folder, megabytes):
    """A control group whose processes write so many MB/s to the disk below."""
    device = os.stat(folder).st_dev
    GROUP.mkdir(exist_ok=True)
    try:
        (GROUP / "blkio.throttle.write_bps_device").write_text(
            f"{os.major(device)}:{os.minor(device)} {megabytes * 1000000}\n")
        yield lambda: (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        GROUP.rmdir()


def measure(peer, first):
    ends = list(run_log.round_ends(peer).values())
    seconds = [b - a for a, b in zip(ends, ends[1:])]
    with open(peer / "events.jsonl", encoding="utf-8") as lines:
        kinds = [json.loads(line)["kind"] for line in lines]
    with open(peer / "metrics.jsonl", encoding="utf-8") as lines:
        scored = {r["round"] for r in map(json.loads, lines) if r.get("scores")}
    median = statistics.median(seconds)
    # Rounds before the first checkpoint meet, and settle overlap.
    counted = seconds[first - 1:]
    longest = max(counted)
    slow = sum(s > 1.5 * median for s in counted) / len(counted)
    return {"median_s": round(median, 4), "longest_s": round(longest, 4),
            "longest_round": first + 1 + counted.index(longest),
            "ratio": round(longest / median, 3), "slow": round(slow, 4),
            "checkpoints": kinds.count("checkpoint"),
            "checkpoints_skipped": kinds.count("checkpoint_skipped"),
            "scores": len(scored), "scores_skipped": kinds.count("score_skipped")}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--disk", type=int, default=50, help="MB/s")
    parser.add_argument("--parameters", type=int, default=2258308)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="checkpoints")
    parser.add_argument("--evaluate", type=int, default=0, help="scores")
    parser.add_argument("--config", help="of another game than the synthetic one")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--data", help="the folder of that game's data")
    parser.add_argument("--step", default="200ms")
    options = parser.parse_args()
    if not options.every and not options.evaluate:
        parser.error("neither checkpoints nor scores")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, \
         slow_disk(folder, options.disk) as enter:
        config = options.config or SOURCE / "deploy/configs/synthetic.textproto"
        command = [os.path.abspath(options.gossamer), "train", "--config",
                   config, "--runs", folder, "--name", "run"]
        if options.data:
            command += ["--data", os.path.abspath(options.data)]
        settings = [f"peers={options.peers}", f"rounds={options.rounds}",
                    f"checkpoint.every={options.every}",
                    f"evaluation.every={options.evaluate}", *options.set]
        if not options.config:
            settings += [f"game.synthetic.parameters={options.parameters}",
                         f"game.synthetic.step_time={options.step}"]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, preexec_fn=enter)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
        peers = sorted(pathlib.Path(folder).glob("run/peer-*"))
        first = min(n for n in (options.every, options.evaluate) if n)
        print(json.dumps([measure(peer, first) for peer in peers], indent=1))


if __name__ == "__main__":
    main()
