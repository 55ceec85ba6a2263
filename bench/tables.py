"""The tables of `performance.md` and `planning-for-load.md`, each made from results as they are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    if not rows:
        return ["Not measured yet."]
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(each) for each in line)} |" for line in lines]


def _of(found: Mapping[str, float], digits: int = 2) -> str:
    return f"{found['median']:.{digits}f} ({found['least']:.{digits}f} to {found['most']:.{digits}f})"


def _rows(results: Results, name: str, **wanted: Any) -> list[dict[str, Any]]:
    rows = results.get(name, {}).get("rows", [])
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _machines(results: Results) -> list[str]:
    rows = []
    for name in ("costs", "raw", "rivals", "growth", "mapping"):
        if name in results:
            machine = results[name]["machine"]
            rows.append([name, results[name]["at"][:16], machine["cores"], machine["load_after"][0]])
    return _table(["benchmark", "when (UTC)", "cores", "load of the machine at its end"], rows)


def _verdict(reached: float, aim: float, *, most: bool = False) -> str:
    return "yes" if (reached <= aim if most else reached >= aim) else "no"


def _end_to_end(results: Results) -> Iterator[list[object]]:
    wanted = [
        ("Transactional, one UPDATE, PostgreSQL: of the same task unguarded", "postgresql", "update", 0.90),
        ("Leased, empty body, Redis: of bare Celery", "redis", "empty", 0.90),
        *((f"10 ms body, {ledger}: of bare Celery", ledger, "10ms", 0.97) for ledger in ("postgresql", "redis")),
    ]
    for what, ledger, body, aim in wanted:
        for row in _rows(results, "rivals", ledger=ledger, body=body, contender="effectonce"):
            of = row["of_bare"]
            yield [f"{what} ({row['broker']})", f"at least {aim:.2f}", _of(of), _verdict(of["median"], aim)]
    for ours in _rows(results, "rivals", ledger="redis", body="empty", contender="effectonce"):
        for name in ("celery-once-task", "relier"):
            for row in _rows(results, "rivals", ledger="redis", body="empty", contender=name, broker=ours["broker"]):
                of = ours["per_s"]["median"] / row["per_s"]["median"]
                yield [f"Leased, empty body: of {name} ({ours['broker']})", "above 1", f"{of:.2f}", _verdict(of, 1.0)]


def _at_the_store(results: Results) -> Iterator[list[object]]:
    for guarded in _rows(results, "raw", store="postgresql", clients=8, what="guarded Transactional"):
        (plain,) = _rows(results, "raw", store="postgresql", clients=8, what="unguarded, SQLAlchemy")
        of = guarded["per_second"]["median"] / plain["per_second"]["median"]
        yield ["guarded transaction of the unguarded one, 8 clients", "at least 0.70", f"{of:.2f}", _verdict(of, 0.7)]
    for row in _rows(results, "raw", clients=1, what="duplicate refused"):
        rate = row["per_processor_second"]
        what = f"duplicates of finished work for a second of a client's processor, {row['store']}"
        yield [what, "at least 5,000", f"{rate:,.0f}", _verdict(rate, 5000)]
        (body,) = _rows(results, "raw", clients=1, store=row["store"], what="empty body run")
        of = row["per_second"]["median"] / body["per_second"]["median"]
        yield [f"a duplicate beside an empty body, {row['store']}", "above 1", f"{of:.2f}", _verdict(of, 1.0)]


def _by_count(results: Results) -> Iterator[list[object]]:
    for row in _rows(results, "costs"):
        if row["what"].startswith("guard's own Python, T"):
            us = row["us"]
            yield [
                f"guard's own Python, {row['ledger']}: {row['calls']} calls, microseconds of processor",
                "under 60",
                _of(us, 0),
                _verdict(us["median"], 60, most=True),
            ]
        if "ms" in row:
            ms = row["ms"]
            yield [f"`{row['what']}`, ms of processor", "under 30", _of(ms, 1), _verdict(ms["median"], 30, most=True)]
        if row["what"].startswith("one entry"):
            size = row["bytes"]
            yield ["an entry with its indices, bytes", "at most 250", size, _verdict(size, 250, most=True)]
    for row in _rows(results, "growth", what="size"):
        if row["entries"]:
            for name in ("p50", "p99"):
                of = row[f"{name}_of_first"]
                what = f"claim {name} beside {row['entries']:,} entries, of the empty table"
                yield [what, "at most 1.15", f"{of:.2f}", _verdict(of, 1.15, most=True)]


def _targets(results: Results) -> list[str]:
    rows = [*_end_to_end(results), *_at_the_store(results), *_by_count(results)]
    return _table(["what", "aim", "reached: median (least to most)", "met"], rows)


def _wire(results: Results) -> list[str]:
    seen: dict[str, list[object]] = {}
    for row in _rows(results, "costs"):
        if row["what"].startswith("on the wire"):
            seen[row["what"]] = [row["what"][13:], " ".join(row["statements"]), row["round_trips"]]
    return _table(["one call of", "statements", "round trips"], list(seen.values()))


def _bytes(results: Results) -> list[str]:
    return _table(
        ["on PostgreSQL", "bytes"], [[row["what"], row["bytes"]] for row in _rows(results, "costs") if "bytes" in row]
    )


def _rivals(results: Results) -> list[str]:
    rows = [
        [
            *(row["broker"], row["ledger"], row["body"], row["contender"], _of(row["of_bare"])),
            *(f"{row['per_s']['median']:.0f}", f"{row['sent_per_s']['median']:.0f}"),
            " / ".join(f"{late:.1f}" for late in row.get("latency_ms", {}).values()) or "not asked",
        ]
        for row in _rows(results, "rivals")
    ]
    return _table(
        ["broker", "ledger", "body", "contender", "of bare", "a second", "sent a second", "p50 / p99 ms, open loop"],
        rows,
    )


def _raw(results: Results) -> list[str]:
    rows = [
        [row["store"], row["clients"], row["what"], _of(row["ratio"]), row["to"], f"{row['per_second']['median']:.0f}"]
        for row in _rows(results, "raw")
    ]
    return _table(["store", "clients", "what", "ratio", "of", "a second"], rows)


def _growth(results: Results) -> list[str]:
    def shown(value: object) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{name} {each:.1f}" for name, each in value.items())
        return str(value)

    rows = [
        [row["what"], "; ".join(f"{name} {shown(value)}" for name, value in row.items() if name != "what")]
        for row in _rows(results, "growth")
    ]
    return _table(["part", "measured"], rows)


def _plan(results: Results) -> list[str]:
    rows = [[f"{value:,.0f}" for value in row.values()] for row in _rows(results, "plan")]
    head = (
        "effects a second",
        "PostgreSQL servers like this one",
        "Redis servers like this one (Leased)",
        "log MB a second",
        "of them without the guard",
        "entries kept for 7 days",
        "room for them, GB",
        "to be pruned a second",
    )
    return _table(head, rows)


def _measured(results: Results) -> list[str]:
    found = results.get("plan", {}).get("measured", {})
    return _table(["measured", "value"], [[name.replace("_", " "), f"{value:,.0f}"] for name, value in found.items()])


def _spreads(results: Results) -> list[str]:
    rows = [
        [row["scopes"], row["ledgers"], f"{row['busiest_of_mean']:.2f}"]
        for row in results.get("plan", {}).get("spreads", [])
    ]
    return _table(["scopes", "ledgers", "busiest ledger, of the mean"], rows)


def _mapping(results: Results) -> list[str]:
    rows = [
        [_of(row["one server"], 0), _of(row["two servers"], 0), _of(row["ratio"])] for row in _rows(results, "mapping")
    ]
    return _table(["effects a second on one server", "on two, by scope", "ratio"], rows)


TABLES: dict[str, Callable[[Results], list[str]]] = {
    "machines": _machines,
    "targets": _targets,
    "wire": _wire,
    "bytes": _bytes,
    "rivals": _rivals,
    "raw": _raw,
    "growth": _growth,
    "plan": _plan,
    "measured": _measured,
    "spreads": _spreads,
    "mapping": _mapping,
}
