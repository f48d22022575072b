#!/usr/bin/env python3
"""The include graph between folders, with the number of includes on each edge.

  include_graph.py                    a table of floors and of folders, as text
  include_graph.py --depth 1          the floors alone
  include_graph.py --dot graph.dot    for Graphviz
  include_graph.py --svg graph.svg    a picture; needs nothing installed
  include_graph.py --png graph.png    a picture, by Graphviz's program dot

It names includes that go up a floor, and folders that include each other in a
circle; the exit status is 1 if an include goes up.  The test `layering` holds the
same rule.  Reads the sources under version control in --root.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from layering import FLOORS  # noqa: E402: the rule has one home

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
COLORS = ["#dbe9d3", "#d3e3f0", "#f6e6c8", "#eed6d6", "#e6e0ee"]


def folder_of(path, depth):
    return "/".join(os.path.dirname(path).split("/")[:depth])


def graph(depth):
    """Returns counts of includes by (from, to) between folders of at most
    `depth` parts, and the includes that go up."""
    files = subprocess.run(["git", "ls-files", "*.h", "*.cc", "*.cu"],
                           capture_output=True, text=True,
                           check=True).stdout.split()
    edges, up = collections.Counter(), []
    for path in files:
        floor = path.split("/")[0]
        if floor not in FLOORS or not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as text:
            names = INCLUDE.findall(text.read())
        for name in names:
            target = name.split("/")[0]
            if target not in FLOORS or name.endswith(".inc"):
                continue
            if FLOORS.index(target) > FLOORS.index(floor):
                up.append(f"{path} includes {name}")
            edge = folder_of(path, depth), folder_of(name, depth)
            if edge[0] != edge[1]:
                edges[edge] += 1
    return edges, up


def circles(edges):
    """Returns the sets of folders that reach each other (Tarjan)."""
    out = collections.defaultdict(list)
    for a, b in edges:
        out[a].append(b)
    number, low, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in out[v]:
            if w not in number:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            part = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(part) > 1:
                found.append(sorted(part))

    for v in list(out):
        if v not in number:
            visit(v)
    return sorted(found)


def order(folder):
    return FLOORS.index(folder.split("/")[0]), folder


def table(edges):
    lines = []
    for a in sorted({a for a, _ in edges}, key=order):
        to = sorted((b for x, b in edges if x == a), key=order)
        lines.append(f"{a:26} " +
                     ", ".join(f"{b} {edges[a, b]}" for b in to))
    return "\n".join(lines)


def dot(edges):
    lines = ["digraph includes {", "  rankdir=BT;",
             '  node [shape=box, style=filled, fontname="sans-serif"];']
    for floor, color in zip(FLOORS, COLORS):
        nodes = sorted({n for e in edges for n in e
                        if n.split("/")[0] == floor})
        lines.append(f"  subgraph cluster_{floor} {{ label=\"{floor}\";")
        lines += [f'    "{n}" [fillcolor="{color}"];' for n in nodes]
        lines.append("  }")
    lines += [f'  "{a}" -> "{b}" [penwidth={1 + min(n, 60) / 20:g}];'
              for (a, b), n in sorted(edges.items())]
    return "\n".join(lines + ["}"]) + "\n"


def svg(edges):
    """Draws floors as rows, the lowest at the bottom, and a line for each edge.
    """
    rows = [[n for n in sorted({n for e in edges for n in e}, key=order)
             if n.split("/")[0] == floor] for floor in FLOORS]
    rows = [row for row in rows if row]
    width, high = 1500, 150
    height = high * len(rows) + 20
    at, boxes = {}, []
    for i, row in enumerate(rows):
        y = height - high * (i + 1)
        step = (width - 20) / len(row)
        for j, name in enumerate(row):
            # Neighbours in a row stand at two heights, so that names fit.
            x, up = 10 + step * (j + 0.5), 34 * (j % 3)
            at[name] = x, y + up + 30
            short = name.split("/", 1)[-1]
            w = 10 + 7 * len(short)
            color = COLORS[FLOORS.index(name.split("/")[0])]
            boxes.append(f'<rect x="{x - w / 2:.0f}" y="{y + up + 18}" '
                         f'width="{w}" height="22" fill="{color}" '
                         f'stroke="#666"/><text x="{x:.0f}" y="{y + up + 34}" '
                         f'text-anchor="middle">{short}</text>')
        boxes.append(f'<text x="4" y="{y + 12}" font-weight="bold">'
                     f'{row[0].split("/")[0]}</text>')
    lines = []
    for (a, b), n in sorted(edges.items()):
        up = order(b)[0] > order(a)[0]
        (x1, y1), (x2, y2) = at[a], at[b]
        lines.append(f'<line x1="{x1:.0f}" y1="{y1}" x2="{x2:.0f}" y2="{y2}" '
                     f'stroke="{"#c00" if up else "#999"}" '
                     f'stroke-opacity="0.5" stroke-width="'
                     f'{0.5 + min(n, 60) / 20:g}"/>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *lines, *boxes, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--tests", action="store_true",
                        help="with the folders of tests/")
    for kind in ("dot", "svg", "png"):
        parser.add_argument("--" + kind, metavar="FILE")
    arguments = parser.parse_args()
    outputs = {kind: os.path.abspath(path)
               for kind in ("dot", "svg", "png")
               if (path := getattr(arguments, kind))}
    os.chdir(arguments.root)
    edges, up = graph(arguments.depth)
    if not arguments.tests:
        edges = collections.Counter({e: n for e, n in edges.items()
                                     if not e[0].startswith("tests")})
    if "png" in outputs and shutil.which("dot") is None:
        sys.exit("--png needs Graphviz's program dot (package graphviz): "
                 "install it, or take --svg")
    for kind, path in outputs.items():
        if kind == "png":
            subprocess.run(["dot", "-Tpng", "-o", path],
                           input=dot(edges).encode(), check=True)
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(dot(edges) if kind == "dot" else svg(edges))
    if not outputs:
        floors, _ = graph(1)
        floors = {e: n for e, n in floors.items()
                  if arguments.tests or e[0] != "tests"}
        print("Floors\n\n" + table(floors))
        if arguments.depth > 1:
            print("\nFolders\n\n" + table(edges))
        print()
    for circle in circles(edges):
        print("in a circle: " + ", ".join(circle))
    print("\n".join("goes up: " + line for line in up) or
          "no include goes up a floor")
    return 1 if up else 0


if __name__ == "__main__":
    sys.exit(main())
