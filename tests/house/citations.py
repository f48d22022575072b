#!/usr/bin/env python3
"""Pages and the code that cites them agree.

A citation is the name of a page and a section of it, "PROTOCOL.md 4.4"; more
sections may follow ("PROTOCOL.md 2, 3 and 6").  Every page that is cited
exists, and so does the section.  Every section of a page in RULES is cited by
some code, but for those that only explain.  Reads the files under version
control below the folder given, or below the one it is run in.
"""

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
    print("\n".join(problems) or f"{citations} citations hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
