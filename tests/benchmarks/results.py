#!/usr/bin/env python3
"""Writes RESULTS.md, and the chart of the README, from measured claims.

Each file of results/ has one claim: its value as measured, the command that
measures it, the machine and the commit.  After a measurement,

  results.py record ID "VALUE" --machine "2 shared cores, Debian 12"

keeps the value with the current commit and date; `results.py` writes the page
and the chart; `results.py --check` fails if they are not what the files say.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "results")
PAGE = os.path.join(HERE, "RESULTS.md")
CHART = os.path.join(HERE, "..", "..", "deploy", "pictures", "round.svg")
NEEDED = ["id", "topic", "claim", "value", "command", "machine", "commit",
          "commit_is", "date"]
MAY_HAVE = ["note", "series", "untuned"]

TOPICS = {
    "quickstart": "The quickstart",
    "computation": "Computation",
    "gpus": "GPUs",
    "exchanges": "Exchanges",
    "rounds": "Rounds over long links",
    "faults": "Faults",
    "membership": "Joins, leaves and deaths",
    "methods": "Methods and compressors",
    "library": "A program's own loop",
    "privacy": "Private data",
}
UNTUNED = """\
Rows marked *untuned* compare scores of methods at one learning rate that was tuned
for none of them. They do not show that one method is better than another: a change
of the rate alone moves a score further than most of these rows differ, and the order
of two methods can turn round between two games.
"""
HEAD = """\
# Results

<!-- Written by results.py from the files of results/: change those. -->

One claim a row. *Commit* is the one that was measured; in italics, the one that
recorded the value, where the measured tree was not noted. Ratios are of one run on one
machine. Commands are run in the root of the repository; programs without a path
are in `build/release/bin`.
"""

# The README's chart: label, claim whose series it shows.
BARS = [("gossip", "gossip_round"),
        ("fastest of nine all-reduces, first run", "allreduce_round_run_1"),
        ("fastest of nine all-reduces, second run", "allreduce_round_run_2")]
PARTS = [("compute", "compute", "#3b6ea5"),
         ("mix", "encode and apply", "#e39c37"),
         ("wait", "wait for the network", "#b9bec4")]


def load():
    """Returns the claims by id; ends the program if one has a mistake."""
    claims = {}
    for name in sorted(os.listdir(DATA)):
        path = os.path.join(DATA, name)
        with open(path, encoding="utf-8") as text:
            claim = json.load(text)
        missing = [key for key in NEEDED if not claim.get(key)]
        unknown = [key for key in claim if key not in NEEDED + MAY_HAVE]
        if missing or unknown:
            sys.exit(f"{path}: missing {missing}, unknown {unknown}")
        if name != claim["id"] + ".json":
            sys.exit(f"{path}: its id is {claim['id']}: name the file by it")
        if claim["topic"] not in TOPICS:
            sys.exit(f"{path}: topic '{claim['topic']}' is none of "
                     f"{', '.join(TOPICS)}")
        claims[claim["id"]] = claim
    return claims


def row(claim):
    text = claim["claim"] + (" *(untuned)*" if claim.get("untuned") else "")
    if "note" in claim:
        text += f". {claim['note']}"
    commit = claim["commit"]
    if claim["commit_is"] != "measured":
        commit = f"*{commit}*"
    return (f"| {text} | {claim['value']} | `{claim['command']}` | "
            f"{claim['machine']} | {commit}, {claim['date']} |")


def page(claims):
    lines = [HEAD]
    for topic, title in TOPICS.items():
        rows = [c for c in claims.values() if c["topic"] == topic]
        if not rows:
            continue
        lines.append(f"## {title}\n")
        if any(c.get("untuned") for c in rows):
            lines.append(UNTUNED)
        lines.append("| claim | value | command | machine | commit |\n"
                     "| --- | --- | --- | --- | --- |")
        lines += [row(c) for c in rows]
        lines.append("")
    return "\n".join(lines)


def chart(claims):
    """Returns the chart as SVG: a bar for each claim, in milliseconds."""
    width, left, scale = 830, 290, 1.0
    height = 60 + 34 * len(BARS) + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           '<text x="10" y="20" font-weight="bold">One round at a round trip of '
           '100 ms and 100 Mbit/s, milliseconds</text>']
    x = left
    for _, label, color in PARTS:
        out.append(f'<rect x="{x}" y="32" width="12" height="12" '
                   f'fill="{color}"/><text x="{x + 17}" y="43">{label}</text>')
        x += 40 + 7 * len(label)
    y = 60
    for label, claim in BARS:
        series, x = claims[claim]["series"], left
        out.append(f'<text x="{left - 8}" y="{y + 16}" '
                   f'text-anchor="end">{label}</text>')
        for part, _, color in PARTS:
            w = series.get(part, 0) * scale
            if w > 0:
                out.append(f'<rect x="{x:g}" y="{y}" width="{w:g}" height="22" '
                           f'fill="{color}"/>')
            x += w
        out.append(f'<text x="{x + 6:g}" y="{y + 16}">'
                   f'{sum(series.values())}</text>')
        y += 34
    return "\n".join(out) + "\n</svg>\n"


def record(arguments):
    path = os.path.join(DATA, arguments.id + ".json")
    if not os.path.exists(path):
        sys.exit(f"{path} is not there: write the claim and its command first")
    with open(path, encoding="utf-8") as text:
        claim = json.load(text)
    git = ["git", "-C", HERE]
    if subprocess.run(git + ["diff", "--quiet", "HEAD", "--", ":!*.md"]).returncode:
        sys.exit("the tree has changes that are not committed: a value belongs "
                 "to a commit")
    claim.pop("series", None)
    claim.update(
        value=arguments.value, commit_is="measured",
        machine=arguments.machine,
        commit=subprocess.run(git + ["rev-parse", "--short=7", "HEAD"],
                              capture_output=True, text=True,
                              check=True).stdout.strip(),
        date=datetime.date.today().isoformat())
    if arguments.series:
        claim["series"] = json.loads(arguments.series)
    with open(path, "w", encoding="utf-8") as text:
        json.dump(claim, text, indent=2, ensure_ascii=False)
        text.write("\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail if the page is stale")
    commands = parser.add_subparsers(dest="command")
    keep = commands.add_parser("record", help="keep a measured value")
    keep.add_argument("id")
    keep.add_argument("value")
    keep.add_argument("--machine", required=True)
    keep.add_argument("--series", help='numbers of a chart, {"label": 1.0}')
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(arguments)
    claims = load()
    stale = 0
    for path, text in ((PAGE, page(claims)), (CHART, chart(claims))):
        old = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                old = file.read()
        if arguments.check:
            if old != text:
                print(f"{os.path.relpath(path)} is not what results/ says: run "
                      "tests/benchmarks/results.py")
                stale = 1
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if not stale:
        print(f"{len(claims)} claims")
    return stale


if __name__ == "__main__":
    sys.exit(main())
