#!/usr/bin/env python3
"""The rules of the house, enforced: which folder may include which, and how files
look.

Reads the sources as text, from the folder given or the one it is run in.
"""

import os
import re
import sys

# The layers, lowest first: a file includes its own layer and those below.
LAYERS = ["algorithms", "topology", "gan_models", "runtime", "tests"]
# The messages of proto/ are known from the second layer up.
KNOWS_PROTO = {"topology", "runtime", "tests"}
# Headers that only some files may include.
EXTERNAL = [
    (re.compile(r"^(torch|ATen|c10)/"), re.compile(r"^gan_models/.*\.cc$"),
     "torch only in gan_models/*.cc"),
    (re.compile(r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$"),
     re.compile(r"^runtime/transport/grpc/|_service\.(h|cc)$|_client\.(h|cc)$|"
                r"(^|/|_)main\.cc$"),
     "gRPC only in transport/grpc, services, clients and mains"),
    (re.compile(r"^(cuda|nccl)"),
     re.compile(r"^algorithms/kernels/.*\.cuh?$|^runtime/transport/nccl/"),
     "CUDA and NCCL only in kernels/*.cu, *.cuh and transport/nccl"),
    (re.compile(r"^CLI/"), re.compile(r"^runtime/base/command_line\.cc$"),
     "CLI11 only in runtime/base/command_line.cc"),
]
PURE = re.compile(r"^(algorithms|topology)/")
# The annotated mutex, under which threads share the pool of buffers.
MAY_LOCK = {"algorithms/base/mutex.h"}
IMPURE = {"thread", "mutex", "chrono", "fstream", "iostream", "filesystem",
          "condition_variable", "random", "ctime"}
# A person may set the machine's date, so no wait and no measurement uses it
# (runtime/base/steady_time.h).
WALL_CLOCK = re.compile(r"absl::Now\b|system_clock::now|GPR_CLOCK_REALTIME")
MAY_ASK_DATE = [
    "runtime/base/real_loop.cc",  # read once, then the monotonic clock
    "runtime/identity/",  # the validity of certificates
    "runtime/cli/certs.cc",
    "runtime/daemon/process_reports.cc",  # a log's line
    "runtime/service/main.cc",
]
CHANGED_BY_TORCH = re.compile(r"^(google/protobuf|proto)/")


def layer_of(path):
    first = path.split("/")[0]
    return LAYERS.index(first) if first in LAYERS else None


def check_includes(path, text, problems):
    includes = re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text, re.M)
    own = layer_of(path)
    for name in includes:
        layer = layer_of(name)
        if layer is not None and layer > own:
            problems.append(f"{path}: includes {name}, which is a layer above")
        if (name.startswith(("proto/", "google/protobuf/")) and
                LAYERS[own] not in KNOWS_PROTO):
            problems.append(f"{path}: includes {name}: {LAYERS[own]} knows no "
                            "messages")
        for pattern, where, rule in EXTERNAL:
            if pattern.search(name) and not where.search(path):
                problems.append(f"{path}: includes {name}: {rule}")
        if PURE.match(path) and name in IMPURE and path not in MAY_LOCK:
            problems.append(f"{path}: includes <{name}>: this folder has no "
                            "I/O, no clock, no threads and no std random")
    if any(re.match(r"(torch|ATen)/", n) for n in includes):
        for n in includes:
            if CHANGED_BY_TORCH.match(n):
                problems.append(f"{path}: torch and {n} in one file")


def check_clock(path, text, problems):
    code = re.sub(r"//.*", "", text)
    if WALL_CLOCK.search(code) and not path.startswith(tuple(MAY_ASK_DATE)):
        problems.append(f"{path}: asks for the date; SteadyNow() or the loop's "
                        "Now() is not moved by a change of the clock")


def check_looks(path, text, problems):
    if path.endswith((".h", ".cuh")):
        if not text.startswith(("//", "/*")):
            problems.append(f"{path}: does not open with what it is for")
        # An installed header is included by another path.
        shown = path.split("/include/gossamer/")[-1]
        guard = "GOSSAMER_" + re.sub(r"[/.\-]", "_", shown).upper() + "_"
        if guard not in text and "GOSSAMER_" + re.sub(
                r"[/.\-]", "_", path).upper() not in text:
            problems.append(f"{path}: has no guard {guard}")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    os.chdir(root)
    problems, seen = [], 0
    for top in ("runtime", "topology", "algorithms", "gan_models"):
        for folder, _, files in os.walk(top):
            if any(f.endswith((".h", ".cc")) for f in files) and \
                    "README.md" not in files and folder.count("/") < 2:
                problems.append(f"{folder}: has no README.md")
            for f in sorted(files):
                if not f.endswith((".h", ".cc", ".cu", ".cuh")):
                    continue
                path = os.path.join(folder, f)
                with open(path, encoding="utf-8") as source:
                    text = source.read()
                seen += 1
                check_includes(path, text, problems)
                check_clock(path, text, problems)
                check_looks(path, text, problems)
    for top in ("proto", "runtime", "algorithms", "gan_models", "topology",
                "tests", "deploy"):
        if not os.path.exists(os.path.join(top, "README.md")):
            problems.append(f"{top}: has no README.md")
    if seen < 100:
        problems.append(f"only {seen} sources found: wrong folder?")
    print("\n".join(problems) or f"{seen} sources keep the rules of the layers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
