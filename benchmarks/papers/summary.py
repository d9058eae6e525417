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
    run = json.loads((folder / f"{claim['run']}.json").read_text("utf-8"))
    command = run["command"].replace("benchmarks/papers/", "").split(" --out")[0]
    command = re.sub(r"--data \S+", "--data FOLDER", command)
    spent = run.get("processor", run["seconds"])
    word = next(v for v in VERDICTS if claim["verdict"].startswith(v))
    link = f":ref:`{claim['where']} <reproduction-{claim['label']}>`"
    return {
        "claim": f"{link}: {claim['claim']}",
        "printed": claim["printed"],
        "here": here,
        "verdict": f"**{word}**{claim['verdict'][len(word) :]}",
        "command": f"``{command}``",
        "data": claim["data"],
        "minutes": f"{spent / 60:.2g}" if spent else "",
        "run": f"{run['date']}, {run['commit']}" + ", earlier" * ("earlier" in run),
    }


def main():
    """Write the summary, and say how often each verdict is."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", nargs="?", type=Path, default=HOME)
    folder = options.parse_args().folder
    claims = CLAIMS["claim"]
    write_rows(folder / "summary.csv", [line(claim, folder) for claim in claims])
    for verdict in VERDICTS:
        n = sum(claim["verdict"].startswith(verdict) for claim in claims)
        print(f"{verdict}: {n} of {len(claims)}")


if __name__ == "__main__":
    main()
