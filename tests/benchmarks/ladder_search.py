#!/usr/bin/env python3
"""What `auto` chooses on a link, beside the best of all fixed choices there: four
peers on a ring with every codec that auto may choose and every overlap.

    ladder_search.py --gossamer build/release/bin/gossamer
    ladder_search.py --gossamer build/release/bin/gossamer --rungs world --step 40ms
    ladder_search.py --gossamer build/release/bin/gossamer --lab --seconds 60 \\
        --rungs mobile,satellite

Prints a line of JSON for each link: rounds/s of the later half of each run, by
the slowest peer, the best fixed choice and what auto makes of it.

Runs are rehearsals in virtual time, which predict no losses.  With --lab they are
fleets in network namespaces, as root: for links that lose a part of what they
carry, with cubic and with bbr, too.  There two runs of one choice differ,
so the best three of all and auto run again, and their medians are compared.
All choices take half an hour a link: rehearsals with --at-once 4; in the lab, where
one fleet runs at a time, 56 runs of --seconds 30.  --codecs, --overlaps and
--congestions leave out those that an earlier search has shown to be far worse:

    ladder_search.py --gossamer build/release/bin/gossamer --lab --seconds 45 \\
        --rungs ocean --codecs innov-int8 --overlaps 2,3
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile

import run_log

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RUNGS = "lan,zone,region,ocean,world,home"
CODECS = "innov-int8,innov-int4,innov-lm2,innov-sign"
OVERLAPS = "0,1,2,3,4,6,8"
CONGESTIONS = "cubic,bbr"
AGAIN = 3  # the fixed choices that run again in the lab
FEWEST = 16  # rounds of a run in the lab that has a rate


def rate(program, options, rung, codec, overlap, congestion="auto"):
    """Rounds/s of the slowest peer in the later half of its rounds."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        scenario = pathlib.Path(folder) / "scenario.textproto"
        scenario.write_text(f'uplink: "{options.uplink}"\n'
                            f'link {{ like: "{rung}" }}\n')
        out = pathlib.Path(folder) / "run"
        command = [program, "lab", "--scenario", scenario,
                   "--config", SOURCE / "deploy/configs/synthetic.textproto",
                   "--out", out]
        if not options.lab:
            command += ["--rehearse"]
        for setting in ["peers=4",
                        f"rounds={10**6 if options.lab else options.rounds}",
                        f"game.synthetic.parameters={options.parameters}",
                        f"game.synthetic.step_time={options.step}",
                        f"mixing.codec={codec}",
                        f"mixing.overlap_steps={overlap}",
                        f"resources.congestion_control={congestion}",
                        "evaluation.every=0"]:
            command += ["--set", setting]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        if not options.lab:
            said, _ = process.communicate()
            if process.returncode != 0:
                raise SystemExit(said)
            return run_log.slowest_rate(out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            said, _ = process.communicate(timeout=options.seconds)
            raise SystemExit(said)
        # As at Ctrl-C; a fleet whose links are slow may not end by itself.
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=20)
        process.kill()
        process.wait()
        return run_log.slowest_rate(out, least=FEWEST)


def rehearsed(program, options, rung):
    """Rounds/s by the name of each fixed choice, and of auto."""
    fixed = {f"{codec}, {overlap}": rate(program, options, rung, codec, overlap)
             for codec, overlap in itertools.product(
                 options.codecs.split(","), options.overlaps.split(","))}
    return fixed, rate(program, options, rung, "auto", "auto")


def tried(program, options, rung):
    """The same in the lab, with a congestion control in each choice."""
    auto = ("auto", "auto", "auto")
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        def run(choices):
            return list(pool.map(
                lambda choice: rate(program, options, rung, *choice), choices))
        choices = list(itertools.product(
            options.codecs.split(","), options.overlaps.split(","),
            options.congestions.split(",")))
        rates = dict(zip(choices, run(choices)))
        best = sorted(rates, key=rates.get)[-AGAIN:] + [auto]
        again = dict(zip(best, zip(*(run(best) for _ in range(3)))))
    # The first run of the best was a lucky one: it does not count.
    for choice in best:
        rates[choice] = statistics.median(again[choice])
    candidates = {", ".join(choice): rates[choice] for choice in best[:-1]}
    others = {", ".join(choice): r for choice, r in rates.items()
              if choice not in best}
    return candidates, rates[auto], others


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gossamer", required=True)
    parser.add_argument("--rungs", default=RUNGS)
    parser.add_argument("--codecs", default=CODECS)
    parser.add_argument("--overlaps", default=OVERLAPS)
    parser.add_argument("--congestions", default=CONGESTIONS,
                        help="in the lab")
    parser.add_argument("--step", default="200ms")
    parser.add_argument("--uplink", default="unlimited")
    parser.add_argument("--parameters", type=int, default=2258308)
    parser.add_argument("--rounds", type=int, default=60,
                        help="of a rehearsal")
    parser.add_argument("--lab", action="store_true",
                        help="network namespaces, with cubic and bbr, too")
    parser.add_argument("--seconds", type=float, default=60,
                        help="of a run in the lab")
    parser.add_argument("--at-once", type=int, default=1,
                        help="runs in the lab: as many as the cores allow")
    options = parser.parse_args()
    program = os.path.abspath(options.gossamer)
    for rung in options.rungs.split(","):
        others = {}
        if options.lab:
            fixed, auto, others = tried(program, options, rung)
        else:
            fixed, auto = rehearsed(program, options, rung)
        best = max(fixed, key=fixed.get)
        print(json.dumps({
            "rung": rung, "step": options.step, "uplink": options.uplink,
            "parameters": options.parameters,
            "best": best, "best_rounds_per_s": round(fixed[best], 3),
            "auto_rounds_per_s": round(auto, 3),
            "ratio": round(auto / max(fixed[best], 1e-9), 3),
            "fixed": {name: round(r, 3) for name, r in
                      {**others, **fixed}.items()}}), flush=True)


if __name__ == "__main__":
    main()
