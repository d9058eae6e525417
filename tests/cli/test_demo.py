"""The demonstration of the command line."""

import os
import sys

import numpy as np
import pytest
from command_line import assert_one_sentence


def table(out):
    """The table of the demonstration: columns are two or more spaces apart."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("machine"))
    return lines[start : start + 5]


def test_the_demo_prints_an_aligned_table(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--no-picture", "--seed", "3")
    assert (code, err) == (0, "")
    rows = table(out)
    assert len({len(row) for row in rows}) == 1
    assert [row.split("  ")[0].strip() for row in rows] == [
        "machine",
        "MED linear",
        "MED rbf",
        "SVM linear",
        "SVM rbf",
    ]
    for row in rows[1:]:
        wrong, total = row.split(" of 120")[0].split()[-1], 120
        assert int(wrong) / total < 0.15
        assert " of 80 " in row
        # a gap is a number, or a bound where rounding hides it
        gap = row.split("  ")[-2].strip()
        assert gap == "< 1e-12" or 1e-13 < float(gap) < 1.0
    assert "80 crabs to train, 120 to test" in out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "gap, objective, text",
    [
        (1.5e-26, 76.2, "< 1e-12"),
        (0.0, 0.0, "< 1e-14"),
        (1.6e-13, 76.2, "< 1e-12"),
        (2.0e-13, 76.2, "2.0e-13"),
        (2.0e-13, 760.2, "< 1e-11"),
        (3.14e-4, 76.2, "3.1e-04"),
    ],
)
def test_the_demo_prints_no_gap_finer_than_rounding(gap, objective, text):
    from maxent._support.results import gap_text

    assert gap_text(gap, objective) == text


def test_the_picture_of_the_demo_shows_its_machines(tmp_path, run, monkeypatch):
    from matplotlib.figure import Figure

    figures = []
    keep = Figure.savefig

    def savefig(self, *args, **kwargs):
        figures.append(self)
        return keep(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", savefig)
    code, out, _ = run("demo", "-o", tmp_path / "a.png", "--seed", "1")
    (figure,) = figures
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert code == 0 and len(labels) == 6
    assert labels[:2] == ["principal coordinate 2", "error (%)"]
    bars = [round(120 * bar.get_height() / 100) for bar in figure.axes[1].patches[4:]]
    told = [int(row.split(" of 120")[0].split()[-1]) for row in table(out)[1:]]
    assert bars == told
    # the path at C = 10 is the second machine of the table
    path = figure.axes[-1].lines[0]
    at = np.argmin(np.abs(np.log(path.get_xdata() / 10)))
    assert path.get_xdata()[at] == pytest.approx(10.0)
    assert round(1.2 * path.get_ydata()[at]) == told[1]


def test_the_demo_gives_the_same_errors_for_the_same_seed(run):
    def errors(seed):
        out = run("demo", "--no-picture", "--seed", seed)[1]
        return [row.rsplit("  ", 1)[0].rstrip() for row in table(out)[1:]]

    assert errors(1) == errors(1)
    assert errors(1) != errors(2)


@pytest.mark.parametrize(
    "demo, name, magic",
    [([], "a.png", b"\x89PNG"), (["kernels"], "a.PDF", b"%PDF")],
)
def test_the_demo_draws(run, tmp_path, demo, name, magic):
    code, out, err = run("demo", *demo, "-o", tmp_path / name)
    assert (code, err) == (0, "") and f"Picture written to {tmp_path / name}" in out
    content = (tmp_path / name).read_bytes()
    assert content.startswith(magic) and len(content) > 10_000
    assert os.listdir(tmp_path) == [name]


def test_the_demo_goes_on_without_matplotlib(run, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run("demo", "-o", tmp_path / "a.png")
    assert (code, err) == (0, "")
    assert "matplotlib is not installed, so no picture is drawn" in out
    assert os.listdir(tmp_path) == [] and len(table(out)) == 5


@pytest.mark.parametrize(
    "args, words",
    [
        (["-o", "a.gif"], "name a .png, .pdf or .svg file"),
        (["-o", "no/where/a.png"], "does not exist"),
        (["--seed", "-1"], "negative"),
        (["--seed", "x"], "invalid int value"),
    ],
)
def test_wrong_use_of_the_demo_is_one_sentence(run, args, words):
    code, out, err = run("demo", *args)
    assert (code, out) == (2, "") and words in err
    assert_one_sentence(err, "demo")


# ------------------------------------------------------------------------ other methods


def test_the_list_names_every_demo(run):
    from maxent._commands.demos import DEMOS

    code, out, err = run("demo", "--list")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == list(DEMOS)


def numbers_of(out, start):
    """First numbers of the rows of a table, by name."""
    lines = out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(start))
    rows = lines[at + 1 : lines.index("", at)]
    return {row.split("  ")[0]: row.split("  ", 1)[1].split() for row in rows}


def test_kernels_see_more_over_a_longer_horizon(run):
    code, out, err = run("demo", "kernels", "--no-picture")
    rows = numbers_of(out, "horizon")
    assert (code, err) == (0, "")
    wrong = {horizon: int(cells[0]) for horizon, cells in rows.items()}
    assert wrong["16"] < wrong["0"]
    ratio = [float(cells[4]) / float(cells[3]) for cells in rows.values()]
    assert ratio == sorted(ratio, reverse=True)


def test_the_motif_beats_counts_that_know_no_place(run):
    code, out, err = run("demo", "motif", "--no-picture")
    rows = numbers_of(out, "machine")
    assert (code, err) == (0, "")
    wrong = {name: int(cells[3]) for name, cells in rows.items()}
    assert wrong["motif, hidden place"] < wrong["counts of 3 letters"]


def test_entropy_and_likelihood_keep_what_they_say(run):
    code, out, err = run("demo", "latent", "--no-picture")
    rows = numbers_of(out, "kept")
    assert (code, err) == (0, "")
    by_likelihood, by_entropy = (
        [float(cell) for cell in rows[f"greatest {name}"][:2]]
        for name in ("likelihood", "entropy")
    )
    assert by_entropy[0] >= by_likelihood[0] and by_entropy[1] <= by_likelihood[1]


def test_outliers_are_found(run):
    code, out, err = run("demo", "outliers", "--no-picture")
    assert (code, err) == (0, "")
    for cells in numbers_of(out, "model").values():
        found, alarms = int(cells[0]), int(cells[3])
        assert found > 60 and alarms < 20  # of 80 each


@pytest.mark.parametrize("name", ["kernels", "latent", "motif", "outliers"])
def test_every_demo_draws(run, tmp_path, name):
    path = tmp_path / "a.png"
    code, out, err = run("demo", name, "-o", path, "--seed", "1")
    assert (code, err) == (0, "") and f"Picture written to {path}" in out
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000
