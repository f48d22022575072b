#!/usr/bin/env python3
"""Sentences of comments and pages have a subject.

A sentence that begins with "Who ...", "What ...", "Where ...", "One that ...",
"That which ...", "Nobody who ..." and is no question has a clause in the place
of its subject: name the peer, the value or the file that it is about.

sentences_allowed.txt has the files that still have such sentences and how many.
The list only shrinks: the check fails if a file has more than its number, and
if its number could be lower.

  sentences.py              the check
  sentences.py --list PATH  the sentences of files below a folder
  sentences.py --update     writes the numbers as they are, if their sum is not
                            larger (files that were moved or cut keep theirs)
"""

import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ALLOWED = os.path.join(HERE, "sentences_allowed.txt")
HEADLESS = re.compile(
    r"^(?:Who|Whoever|What|Whatever|Where|One (?:that|who|which|whose)|"
    r"That which|(?:Nobody|Nothing|Anybody|Everybody) (?:who|that))\b")
SLASHES = (".h", ".cc", ".cu", ".proto")
HASHES = (".py", ".sh", ".cmake", ".textproto", "CMakeLists.txt")
# The checker itself names such sentences.
NOT_READ = {"tests/house/sentences.py"}


def sentences_of(text):
    text = re.sub(r"\s+", " ", text).strip()
    for sentence in re.split(r"(?<=[.!?:])[)\"'*_`]* +", text):
        yield sentence.lstrip("*_(\"'`-# ")


def comment_blocks(lines, mark):
    """Yields comments as paragraphs; a comment after code is one of its own."""
    block = []
    for line in lines + [""]:
        stripped = line.strip()
        if stripped.startswith(mark):
            words = stripped.lstrip(mark + "!<").strip()
            if words:
                block.append(words)
                continue
            yield " ".join(block)
            block = []
            continue
        yield " ".join(block)
        block = []
        trailing = re.search(r"\s" + re.escape(mark) + r" (.*)$", line)
        if trailing and mark == "//":
            # Words that go on below it belong to the same comment.
            block = [trailing[1]]


def page_blocks(lines):
    """Yields paragraphs, list items and cells of tables, without headings and
    code."""
    block, fenced = [], False
    for line in lines + [""]:
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
        if fenced or stripped.startswith(("#", "```", "<")) or not stripped:
            yield " ".join(block)
            block = []
        elif stripped.startswith("|"):
            yield " ".join(block)
            block = []
            yield from re.split(r"(?<!\\)\|", stripped)
        elif re.match(r"([-*]|\d+\.) ", stripped):
            yield " ".join(block)
            block = [re.sub(r"^([-*]|\d+\.) ", "", stripped)]
        else:
            block.append(stripped)


def headless(path):
    with open(path, encoding="utf-8") as text:
        lines = text.read().split("\n")
    if path.endswith(".md"):
        blocks = page_blocks(lines)
    elif path.endswith(SLASHES):
        blocks = comment_blocks(lines, "//")
    else:
        blocks = comment_blocks(lines, "#")
    return [s for block in blocks for s in sentences_of(block)
            if HEADLESS.match(s) and not s.endswith("?")]


def found():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    if len(files) < 100:
        sys.exit(f"only {len(files)} files found: wrong folder?")
    counts = {}
    for path in files:
        if path.endswith(SLASHES + HASHES + (".md",)) and \
                path not in NOT_READ and os.path.isfile(path):
            counts[path] = headless(path)
    return counts


def allowed():
    numbers = {}
    if os.path.exists(ALLOWED):
        with open(ALLOWED, encoding="utf-8") as text:
            for line in text:
                number, path = line.split()
                numbers[path] = int(number)
    return numbers


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--list", metavar="PATH")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    os.chdir(arguments.root)
    counts = found()
    if arguments.list is not None:
        for path, sentences in counts.items():
            if path.startswith(arguments.list.removeprefix("./")):
                for sentence in sentences:
                    print(f"{path}: {sentence}")
        return 0
    limits = allowed()
    total, limit = sum(map(len, counts.values())), sum(limits.values())
    if arguments.update:
        if limits and total > limit:
            sys.exit(f"{total} sentences without a subject, {limit} are "
                     "allowed: repair the new ones (--list shows them)")
        with open(ALLOWED, "w", encoding="utf-8") as text:
            for path, sentences in sorted(counts.items()):
                if sentences:
                    text.write(f"{len(sentences)} {path}\n")
        print(f"{total} sentences without a subject are left")
        return 0
    problems = []
    for path, sentences in counts.items():
        most = limits.get(path, 0)
        if len(sentences) > most:
            problems.append(f"{path}: {len(sentences)} sentences without a "
                            f"subject, {most} allowed:")
            problems += [f"  {s}" for s in sentences]
        elif len(sentences) < most:
            problems.append(f"{path}: {len(sentences)} are left of {most}: run "
                            "tests/house/sentences.py --update")
    for path in sorted(set(limits) - set(counts)):
        problems.append(f"{path} is not there: run tests/house/sentences.py "
                        "--update")
    print("\n".join(problems) or
          f"{total} sentences without a subject, as many as allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
