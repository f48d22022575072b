"""When the rounds of a run ended, by the logs of its peers."""

import datetime
import json


def round_ends(peer):
    """Seconds since 1970 at which each round of a peer's folder ended, by round;
    a peer without rounds has none."""
    if not (peer / "metrics.jsonl").exists():
        return {}
    with open(peer / "metrics.jsonl", encoding="utf-8") as lines:
        return {r["round"]: datetime.datetime.fromisoformat(
            r["finished"].replace("Z", "+00:00")).timestamp()
            for r in map(json.loads, lines)}


def slowest_rate(run, first=None, least=2):
    """Rounds/s of the slowest peer of a run's folder after round `first`, or in
    the later half of its rounds; 0 if a peer has had fewer than `least`."""
    rates = []
    for peer in run.glob("peer-*"):
        ends = sorted(round_ends(peer).items())
        if len(ends) < least:
            return 0
        later = ends[len(ends) // 2 - 1:]
        if first:
            later = [(number, end) for number, end in ends if number >= first]
        rates.append((len(later) - 1) / (later[-1][1] - later[0][1]))
    return min(rates)
