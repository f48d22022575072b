#!/usr/bin/env python3
"""Every kind of event is reported by some source, and named by some test.

The compiler holds that no other kind is reported (event_kind.h), and telemetry_test
that the page of events explains each.  Reads the sources as text, from the folder
given or the one it is run in.
"""

import os
import re
import sys

CATALOGUE = "topology/fleet/event_kind.h"
OF_SERVICES = "topology/fleet/service_event.h"


TOLD = re.compile(r'(?:Report|report_|ReportByTime|ReportByCount|ReportRefused)\(\s*"(\w+)"')
# Matches Count("kind"), RunUntilReported(fleet, 1, "kind"), e.kind == "kind".
NAMED = re.compile(r'(?:Count|Reported|Told)\([^()"]*"(\w+)"|kind [=!]= "(\w+)"')


def texts(top, ends):
    for folder, _, files in os.walk(top):
        for f in sorted(files):
            if f.endswith(ends):
                with open(os.path.join(folder, f), encoding="utf-8") as source:
                    yield source.read()


def named_by_tests():
    named = {k for text in texts("tests", ".cc")
             for match in NAMED.findall(text) for k in match}
    for text in texts("tests", ".py"):
        for line in text.splitlines():
            # An event that must be absent needs no source that reports it.
            if "assertNot" in line:
                continue
            if "events(" in line or "told(" in line:
                named.update(re.findall(r'"(\w+)"', line))
    return named


def of_services():
    """Returns the kinds of the service's events, and the mistakes in them."""
    with open(OF_SERVICES, encoding="utf-8") as source:
        kinds = re.findall(r'^    \{"(\w+)",', source.read(), re.M)
    told = {k for top in ("runtime", "topology") for text in texts(top, ".cc")
            for k in TOLD.findall(text)}
    tests = "".join(texts("tests", (".cc", ".py")))
    problems = [f"{k}: no service tells it" for k in kinds if k not in told]
    problems += [f"{k}: no test names it" for k in kinds
                 if not re.search(rf'"{k}[":]', tests)]
    if kinds != sorted(set(kinds)) or not kinds:
        problems.append(f"{OF_SERVICES}: not sorted by name")
    return kinds, problems


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    with open(CATALOGUE, encoding="utf-8") as source:
        kinds = re.findall(r'^    \{"(\w+)",', source.read(), re.M)
    told = {k for text in texts("runtime", ".cc") for k in TOLD.findall(text)}
    named = named_by_tests()
    problems = [f"{k}: nobody tells it" for k in kinds if k not in told]
    problems += [f"{k}: no test names it" for k in kinds if k not in named]
    if kinds != sorted(set(kinds)):
        problems.append(f"{CATALOGUE}: not sorted by name")
    if len(kinds) < 30:
        problems.append(f"only {len(kinds)} kinds found in {CATALOGUE}")
    services, more = of_services()
    problems += more
    print("\n".join(problems) or
          f"{len(kinds) + len(services)} kinds are told and tested")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
