"""When the rounds of a run ended, by the logs of its peers."""

import datetime
import json


def round_ends(peer):
    """Seconds since 1970 at which each round of a peer's folder ended, by round."""
    with open(peer / "metrics.jsonl", encoding="utf-8") as lines:
        return {r["round"]: datetime.datetime.fromisoformat(
            r["finished"].replace("Z", "+00:00")).timestamp()
            for r in map(json.loads, lines)}


def slowest_rate(run, first=None, least=0):
    """Rounds/s of the slowest peer of a run's folder after round `first`, or in
    the later half of its rounds; 0 if a peer has had fewer than `least`."""
    rates = []
    for peer in run.glob("peer-*"):
        ends = (round_ends(peer) if (peer / "metrics.jsonl").exists() or not least
                else {})
        last = max(ends, default=0)
        if last < least:
            return 0
        begin = first or last // 2
        rates.append((last - begin) / (ends[last] - ends[begin]))
    return min(rates)
