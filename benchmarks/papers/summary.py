"""What reproduced: docs/reproductions/summary.csv, of claims.toml and the results.

    python summary.py [FOLDER]

Claims, printed values and verdicts are written in `claims.toml`; what was found, by
which command, when, at which commit and in how many minutes is read from the tables
and the files NAME.json that the scripts wrote to the folder.
"""

import argparse
import json
import re
import tomllib
from pathlib import Path

from _results import read_rows, write_rows

CLAIMS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
HOME = Path(__file__).resolve().parents[2] / "docs" / "reproductions"
VERDICTS = ("reproduced", "in part", "not reproduced", "cannot be judged")


def cell(folder, place):
    """The cell that "table | first cells of the row | column" names."""
    name, *first, column = (part.strip() for part in re.split(r"\s*\|\s*", place))
    path = folder / f"{name}_table.csv"
    for row in read_rows(path):
        if list(row.values())[: len(first)] == first:
            return row[column]
    raise SystemExit(f"{path} has no row {first}: run its script again")


def line(claim, folder):
    """Cells of a line of the summary."""
    here = " ".join(claim["here"].split())
    here = re.sub(r"{([^}]*)}", lambda found: cell(folder, found[1]), here)
    names = [claim["run"]] if isinstance(claim["run"], str) else claim["run"]
    runs = [json.loads((folder / f"{n}.json").read_text("utf-8")) for n in names]
    commands = [_command(run, claim.get("only", "")) for run in runs]
    spent = sum(run.get("processor", run["seconds"]) for run in runs)
    run = runs[0]
    word = next(v for v in VERDICTS if claim["verdict"].startswith(v))
    link = f":ref:`{claim['where']} <reproduction-{claim['label']}>`"
    return {
        "claim": f"{link}: {claim['claim']}",
        "printed": claim["printed"],
        "here": here,
        "verdict": f"**{word}**{claim['verdict'][len(word) :]}",
        "command": "; ".join(f"``{command}``" for command in dict.fromkeys(commands)),
        "data": claim["data"],
        "minutes": f"{spent / 60:.2g}" if spent else "",
        "run": f"{run['date']}, {run['commit']}" + ", earlier" * ("earlier" in run),
    }


def _command(run, only):
    """How a run was called, without folders; `only` are the options of a part of it."""
    command = run["command"].replace("benchmarks/papers/", "").split(" --out")[0]
    command = re.sub(r"--data \S+", "--data FOLDER", command)
    return f"{command} {only}".strip()


def main():
    """Write the summary, and how often each verdict is for each paper."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", nargs="?", type=Path, default=HOME)
    folder = options.parse_args().folder
    claims = CLAIMS["claim"]
    write_rows(folder / "summary.csv", [line(claim, folder) for claim in claims])
    papers = dict.fromkeys(claim["where"].split(",")[0] for claim in claims)
    rows = [
        {"paper": paper}
        | {verdict: _count(claims, paper, verdict) for verdict in VERDICTS}
        for paper in (*papers, "")
    ]
    rows[-1]["paper"] = "together"
    write_rows(folder / "verdicts.csv", rows)
    print(rows[-1])


def _count(claims, paper, verdict):
    """Claims of a paper, "" for all, of this verdict."""
    own = [claim for claim in claims if claim["where"].startswith(paper)]
    return sum(claim["verdict"].startswith(verdict) for claim in own)


if __name__ == "__main__":
    main()
