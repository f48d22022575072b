#!/usr/bin/env python3
"""Sentences of comments and pages, and names of tests, have a subject.

A sentence that begins with "Who ...", "What ...", "Where ...", "One that ...",
"That which ...", "Nobody who ..." and is no question has a clause in the place
of its subject: name the peer, the value or the file that it is about.  So does
one that begins with "Knows ...".  A name of a test is read as the sentence that
its words make; what it tests may be its subject.

  sentences.py [ROOT]
"""

import argparse
import os
import re
import subprocess
import sys

HEADLESS = re.compile(
    r"^(?:Who|Whom|Whose|Whoever|What|Whatever|Where|"
    r"One (?:that|who|which|whose|of whom)|"
    r"That which|(?:Nobody|Nothing|Anybody|Everybody) (?:who|that))\b")
VERB = re.compile(r"^Knows\b")
TEST = re.compile(r"\bTEST(?:_[FP])?\(\s*\w+,\s*(\w+)\s*\)|"
                  r"\bdef test_(\w+)\(")
SLASHES = (".h", ".cc", ".cu", ".cuh", ".proto")
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


def names_of_tests(text):
    """Yields each as a sentence."""
    for camel, snake in TEST.findall(text):
        words = re.sub(r"(?<=.)(?=[A-Z])", " ", camel) or snake.replace("_", " ")
        yield words.capitalize()


def headless(path):
    with open(path, encoding="utf-8") as opened:
        text = opened.read()
    lines = text.split("\n")
    if path.endswith(".md"):
        blocks = page_blocks(lines)
    elif path.endswith(SLASHES):
        blocks = comment_blocks(lines, "//")
    else:
        blocks = comment_blocks(lines, "#")
    sentences = [s for block in blocks for s in sentences_of(block)]
    bare = [s for s in sentences if VERB.match(s)]
    sentences += names_of_tests(text)
    return bare + [s for s in sentences
                   if HEADLESS.match(s) and not s.endswith("?")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", nargs="?", default=".")
    os.chdir(parser.parse_args().root)
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    if len(files) < 100:
        sys.exit(f"only {len(files)} files found: wrong folder?")
    read, problems = 0, []
    for path in files:
        if path.endswith(SLASHES + HASHES + (".md",)) and \
                path not in NOT_READ and os.path.isfile(path):
            read += 1
            problems += [f"{path}: {s}" for s in headless(path)]
    print("\n".join(problems) or f"the sentences of {read} files have subjects")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
