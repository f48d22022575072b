#!/usr/bin/env python3
"""Pages and the code that cites them agree.

A citation is the name of a page and a section of it, "PROTOCOL.md 4.4"; more
sections may follow ("PROTOCOL.md 2, 3 and 6").  Every page that is cited
exists, and so does the section.  Every section of a page in RULES is cited by
some code, but for those that only explain.  Every test that GUARANTEES.md
names is there: a filter beside a test program matches one of its tests.  Reads
the files under version control below the folder given, or below the one it is
run in.
"""

import fnmatch
import os
import re
import subprocess
import sys

# Pages whose numbered sections are rules, with the sections that have none.
RULES = {"algorithms/edge/PROTOCOL.md": {"7"}}  # 7 holds 7.1 and 7.2
CODE = (".h", ".cc", ".cu", ".proto", ".py")
SECTION = r"\d{1,2}(?:\.\d{1,2})?(?!\.?\d)"
CITATION = re.compile(
    rf"((?:[\w.-]+/)*[\w-]+\.md)(?: ({SECTION}(?:(?:, | and ){SECTION})*))?")
# References to pages that the tree does not have.
ELSEWHERE = re.compile(r"\b(?:EDGE|DESIGN|HOUSE) \d|section \d+ of the design|"
                       r"the design, section \d")
HEADING = re.compile(rf"^#+ ({SECTION}) ", re.M)
# The checkers name pages in patterns and examples.
NOT_READ = "tests/house/"

GUARANTEES = "tests/GUARANTEES.md"
# A test program with the filters beside it: `edge_test` `*Limit*`, `A.B:C*`.
FILTERS = re.compile(r"`(\w+_test)(?: --gtest_filter='([^`']*)')?`"
                     r"((?:,? `[*A-Z][\w.*:]*`)*)")
PYTHON_TEST = re.compile(r"`(?:\w+\.)?(test_[\w*]+)`")
TEST_PROGRAM = re.compile(r"gossamer_test\((\w+)\s+SRCS\s(.*?)\sDEPS", re.S)
TEST = re.compile(r"^TEST(_F|_P)?\((\w+),\s*(\w+)\)", re.M)
INSTANCE = re.compile(r"^INSTANTIATE_TEST_SUITE_P\((\w*),\s*(\w+)", re.M)


def tracked(*patterns):
    files = subprocess.run(["git", "ls-files", *patterns], capture_output=True,
                           text=True, check=True).stdout.split()
    return [f for f in files if os.path.exists(f)]


def comments(text):
    """Returns the text without the line breaks inside comments, line for line.
    """
    joined = re.sub(r"\n\s*(?://|#) ?", " ", text)
    return re.sub(r"\s+", " ", joined)


def page_of(name, citing, pages):
    """Returns the page that `name` means in the file `citing`, None if there is
    none or more than one."""
    for base in ("", os.path.dirname(citing)):
        path = os.path.normpath(os.path.join(base, name))
        if path in pages:
            return path
    found = [p for p in pages if p.endswith("/" + name)]
    return found[0] if len(found) == 1 else None


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def tests_in(source):
    """Returns the full names of a source's tests, the first one of each suite's
    values."""
    text, names = read(source), []
    prefixes = {suite: prefix for prefix, suite in INSTANCE.findall(text)}
    for kind, suite, name in TEST.findall(text):
        prefix = prefixes.get(suite, "")
        names.append((prefix + "/" if prefix else "") + f"{suite}.{name}" +
                     ("/0" if kind == "_P" else ""))
    return names


def test_programs():
    """Returns the tests of each test program.  Sources in a variable stand for
    all tests of the folder."""
    programs = {}
    for build in tracked("tests/*CMakeLists.txt"):
        folder = os.path.dirname(build)
        for program, sources in TEST_PROGRAM.findall(read(build)):
            paths = {f"{folder}/{s}" for s in sources.split() if s[0] != "$"}
            if "$" in sources:
                paths.update(tracked(f"{folder}/*_test.cc"))
            programs[program + "_test"] = [
                name for path in sorted(paths) for name in tests_in(path)]
    return programs


def missing_tests():
    """Yields what GUARANTEES.md names and the tests lack."""
    text, programs = read(GUARANTEES), test_programs()
    for program, option, beside in FILTERS.findall(text):
        if program not in programs:
            yield f"{GUARANTEES}: there is no {program}"
            continue
        for pattern in re.findall(r"[^`:, ]+", option + beside):
            if not fnmatch.filter(programs[program], pattern):
                yield f"{GUARANTEES}: {program} has no test {pattern}"
    python = [name for path in tracked("tests/*.py")
              for name in re.findall(r"def (test_\w+)", read(path))]
    for pattern in PYTHON_TEST.findall(text):
        if not fnmatch.filter(python, pattern):
            yield f"{GUARANTEES}: no Python test is called {pattern}"


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    pages = {}
    for page in tracked("*.md"):
        with open(page, encoding="utf-8") as text:
            pages[page] = set(HEADING.findall(text.read()))
    if len(pages) < 10:
        sys.exit(f"only {len(pages)} pages found: wrong folder?")
    problems, cited, citations = [], {}, 0
    for path in tracked():
        if not path.endswith(CODE) or path.startswith(NOT_READ):
            continue
        with open(path, encoding="utf-8") as text:
            text = comments(text.read())
        for old in ELSEWHERE.findall(text):
            problems.append(f"{path}: cites \"{old}\", a page that is not in "
                            "the tree: cite a section of one that is")
        for name, sections in CITATION.findall(text):
            if not sections:
                continue
            page = page_of(name, path, pages)
            if page is None:
                problems.append(f"{path}: cites {name}, which no page, or more "
                                "than one, is called")
                continue
            for section in re.findall(SECTION, sections):
                citations += 1
                cited.setdefault(page, set()).add(section)
                if section not in pages[page]:
                    problems.append(f"{path}: cites {name} {section}, and "
                                    f"{page} has no such section")
    for page, prose in RULES.items():
        for section in sorted(pages.get(page, set()) - prose):
            if section not in cited.get(page, set()):
                problems.append(f"{page}: no code cites section {section}: "
                                "cite it where the code does what it says")
        if page not in pages:
            problems.append(f"{page} is not there")
    problems += missing_tests()
    print("\n".join(problems) or f"{citations} citations hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
