#!/usr/bin/env python3
"""Writes RESULTS.md, and the charts of other pages, from measured claims.

Each file of results/ has one claim: its value as measured, the command that
measures it, the machine and the commit.  After a measurement,

  results.py record ID "VALUE" --machine "2 shared cores, Debian 12"

keeps the value with the current commit and date; `results.py` writes the page
and the charts; `results.py --check` fails if they are not what the files say.
"""

import argparse
import datetime
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "results")
PAGE = os.path.join(HERE, "RESULTS.md")
PICTURES = os.path.join(HERE, "..", "..", "deploy", "pictures")
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

# The lab's chart: rounds/s by link, and what bounds them.
LADDER = "ladder_rungs"
LADDER_BARS = {"gossip": ("gossip", "#3b6ea5"),
               "all_reduce": ("fastest all-reduce", "#b9bec4")}
STEPS_PER_SECOND = 4.74  # with the optimizer, of steps of 200 ms
ONE_BIT_BYTES = 317_584  # a payload of innov-sign
LADDER_NOTES = [
    "Limit: a round a step, or payloads of one bit a value at the link's rate. "
    "Below a link's name: round trip and rate.",
    "Satellite, all-reduce: three rounds in 45 s. A link of 256 kbit/s, which "
    "carries",
    "a round in ten seconds at most, is not drawn."]

# The README's chart: label, claim whose series it shows.
BARS = [("gossip", "gossip_round"),
        ("fastest of nine all-reduces, first run", "allreduce_round_run_1"),
        ("fastest of nine all-reduces, second run", "allreduce_round_run_2")]
PARTS = [("compute", "compute", "#3b6ea5"),
         ("mix", "encode and apply", "#e39c37"),
         ("wait", "wait for the network", "#b9bec4")]


# The chart of what a peer costs in fleets of different sizes: the claim, and of
# each panel the key of the benchmark's lines, and what it is.
SIZES = "rehearsal_sizes"
PANELS = [("bytes_a_round", "bytes sent in a round"),
          ("virtual_seconds_a_round", "seconds of a round"),
          ("kb_of_a_peer", "KB of memory"),
          ("ms_of_a_peers_round", "ms of CPU for a round")]


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


def sizes_chart(claims):
    """Returns an SVG of costs over the fleet's size: a panel a cost, both axes
    logarithmic and the same in all panels, so that equal costs are level."""
    lines = claims[SIZES]["series"]
    width, height, left, top = 200, 150, 20, 70
    most = max(line["peers"] for line in lines)
    least = min(line["peers"] for line in lines)
    decade = width / math.log10(most / least)

    def text_of(value):
        return f"{value:.2g}" if value < 1 else f"{value:,.0f}"

    def x_of(peers):
        return left + decade * math.log10(peers / least)

    total = len(PANELS) * (width + 50)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" '
           f'height="{height + top + 50}" font-family="sans-serif" '
           'font-size="12">',
           f'<rect width="{total}" height="{height + top + 50}" fill="white"/>',
           '<text x="10" y="20" font-weight="bold">What one peer costs, by the '
           'number of peers in a rehearsed fleet</text>']
    for panel, (key, label) in enumerate(PANELS):
        at = panel * (width + 50)
        middle = top + height / 2
        base = lines[0][key]

        def y_of(value, base=base, middle=middle):
            # A factor of ten is as high as it is wide.
            return middle - decade * math.log10(value / base)

        out.append(f'<text x="{at + left}" y="48">{label}</text>'
                   f'<rect x="{at + left}" y="{top}" width="{width}" '
                   f'height="{height}" fill="#f4f5f7"/>'
                   f'<line x1="{at + left}" x2="{at + left + width}" '
                   f'y1="{middle:g}" y2="{middle:g}" stroke="#b9bec4"/>')
        points = [(at + x_of(line["peers"]), y_of(line[key])) for line in lines]
        out.append('<polyline fill="none" stroke="#3b6ea5" stroke-width="2" '
                   'points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
                   + '"/>')
        for i, ((x, y), line) in enumerate(zip(points, lines)):
            anchor = ("start" if i == 0 else
                      "end" if i == len(lines) - 1 else "middle")
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" '
                       'fill="#3b6ea5"/>')
            if i in (0, len(lines) - 1):
                out.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" '
                           f'text-anchor="{anchor}">{text_of(line[key])}</text>'
                           f'<text x="{x:.1f}" y="{top + height + 18}" '
                           f'text-anchor="{anchor}">{line["peers"]:,}</text>')
    return "\n".join(out) + "\n</svg>\n"


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


def ladder_chart(claims):
    """Returns an SVG of rounds/s by link: gossip and all-reduce as bars, and a
    mark at what steps and the link allow."""
    lines = claims[LADDER]["series"]
    left, scale, row_height = 230, 100, 42
    height = 130 + row_height * len(lines)
    width = left + 560
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           '<text x="10" y="20" font-weight="bold">Rounds a second of four peers '
           'on a ring, 2.3 million parameters, steps of 200 ms</text>']
    x = left
    for label, color in LADDER_BARS.values():
        out.append(f'<rect x="{x}" y="32" width="12" height="12" '
                   f'fill="{color}"/><text x="{x + 17}" y="43">{label}</text>')
        x += 40 + 7 * len(label)
    out.append(f'<line x1="{x}" x2="{x}" y1="30" y2="46" stroke="black" '
               f'stroke-width="2"/><text x="{x + 8}" y="43">limit of steps and '
               'link</text>')
    for i, line in enumerate(lines):
        y = 64 + i * row_height
        carried = line["mbit"] * 1e6 / 8 / ONE_BIT_BYTES
        limit = left + scale * min(STEPS_PER_SECOND, carried)
        out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end" '
                   f'font-weight="bold">{line["link"]}</text>'
                   f'<text x="{left - 8}" y="{y + 29}" text-anchor="end" '
                   f'fill="#666">{line["label"]}</text>')
        for j, (key, (_, color)) in enumerate(LADDER_BARS.items()):
            bar = line[key] * scale
            # A number on the limit's mark could not be read.
            at = left + bar + 6
            at = limit + 6 if limit - 36 < at < limit + 6 else at
            out.append(f'<rect x="{left}" y="{y + 16 * j}" width="{bar:g}" '
                       f'height="14" fill="{color}"/><text x="{at:g}" '
                       f'y="{y + 16 * j + 12}">{line[key]:.2f}</text>')
        out.append(f'<line x1="{limit:g}" x2="{limit:g}" y1="{y - 3}" '
                   f'y2="{y + 33}" stroke="black" stroke-width="2"/>')
    for i, line in enumerate(LADDER_NOTES):
        out.append(f'<text x="10" y="{height - 44 + 16 * i}" fill="#666">{line}'
                   '</text>')
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
    keep.add_argument("--series", help="numbers of a chart, JSON")
    arguments = parser.parse_args()
    if arguments.command == "record":
        record(arguments)
    claims = load()
    stale = 0
    for path, text in (
            (PAGE, page(claims)),
            (os.path.join(PICTURES, "round.svg"), chart(claims)),
            (os.path.join(PICTURES, "ladder.svg"), ladder_chart(claims)),
            (os.path.join(PICTURES, "sizes.svg"), sizes_chart(claims))):
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
