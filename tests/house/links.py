#!/usr/bin/env python3
"""Every relative link of a page leads to a file or folder that is there.

Reads the pages that are under version control below the folder given, or below
the one it is run in.
"""

import os
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")


def broken_links(page):
    with open(page, encoding="utf-8") as text:
        for target in LINK.findall(text.read()):
            if re.match(r"[a-z]+:|#", target):
                continue
            path = os.path.join(os.path.dirname(page), target.split("#")[0])
            if not os.path.exists(path):
                yield f"{page}: {target} leads nowhere"


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    pages = subprocess.run(["git", "ls-files", "*.md"], capture_output=True,
                           text=True, check=True).stdout.split()
    if len(pages) < 10:
        sys.exit(f"only {len(pages)} pages found: wrong folder?")
    problems = [p for page in pages for p in broken_links(page)]
    print("\n".join(problems) or f"the links of {len(pages)} pages hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
