"""Standard output and error: closed, full, ASCII only, or left by their reader."""

import contextlib
import errno
import io
import os
import subprocess
import sys

import pytest
from command_line import assert_one_sentence, read_rows, write_csv
from processes import HUNG, start

from maxent._persistence.persistence import load
from maxent.cli import main
from maxent.datasets import load_crabs


class Full(io.RawIOBase):
    """A device without space."""

    def writable(self):
        return True

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullText(io.TextIOWrapper):
    """A stream to it, which ends without a word of what it still holds."""

    def __del__(self):
        with contextlib.suppress(OSError):
            self.close()


def full(buffered):
    raw = io.BufferedWriter(Full()) if buffered else Full()
    return FullText(raw, "utf-8", write_through=not buffered)


def ended():
    """A stream that was closed from Python."""
    stream = io.TextIOWrapper(io.BytesIO())
    stream.close()
    return stream


NO_OUTPUT = {
    "closed": (lambda: None, "(it is closed)"),
    "closed by Python": (ended, "(it is closed)"),
    "full": (lambda: full(True), "(No space left on device)"),
    "full, unbuffered": (lambda: full(False), "(No space left on device)"),
}
no_output = pytest.mark.parametrize("kind", NO_OUTPUT)


@pytest.fixture
def names(tmp_path):
    """A CSV file whose names and labels are not ASCII."""
    crabs = load_crabs()
    sexes = [
        {"female": "Weibchen ♀", "male": "Männchen"}[str(s)]
        for s in crabs.target_names[crabs.target]
    ]
    columns = [f"{name} µm" for name in crabs.feature_names]
    path = write_csv(tmp_path / "größe.csv", crabs.data, sexes, columns)
    path.write_bytes(path.read_text().encode())
    return path


@pytest.fixture
def model(run, names, tmp_path, stub):
    path = tmp_path / "modèle.npz"
    assert run("fit", names, path, "--label", "sex")[0] == 0
    return path


@pytest.fixture
def without_output(monkeypatch, capsys):
    """Run a command on a standard output of some kind; exit code and messages."""

    def run(stream, *args):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            code = main([str(arg) for arg in args])
        return code, capsys.readouterr().err

    return run


# ------------------------------------------------------------------- closed or full


@no_output
def test_a_fit_that_cannot_report_leaves_its_model(
    without_output, names, tmp_path, stub, kind
):
    make, why = NO_OUTPUT[kind]
    path = tmp_path / "new.npz"
    code, err = without_output(make(), "fit", names, path, "--label", "sex")
    assert code == 3
    assert err == (
        f"maxent fit: standard output cannot be written {why}; {path} is written all "
        "the same\n"
    )
    assert load(path).n_features_in_ == 5


def test_a_fit_short_of_its_tolerance_says_both(without_output, names, tmp_path, stub):
    stub(lambda self: setattr(self, "converged_", False))
    path = tmp_path / "new.npz"
    code, err = without_output(None, "fit", names, path, "--label", "sex")
    assert code == 1 and err.count("\n") == 2
    assert "tolerance was not reached" in err and "cannot be written" in err
    assert load(path).converged_ is False


@no_output
def test_results_that_cannot_be_printed_are_a_failure(
    without_output, names, model, kind
):
    make, why = NO_OUTPUT[kind]
    for args in (
        ["info", model],
        ["predict", model, names],
        ["demo", "kernels", "--no-picture"],
    ):
        code, err = without_output(make(), *args)
        assert code == 2, args
        assert_one_sentence(err, args[0])
        assert f"standard output cannot be written {why}" in err


def test_the_picture_of_a_demo_stays(without_output, tmp_path):
    path = tmp_path / "demo.png"
    code, err = without_output(None, "demo", "kernels", "-o", path)
    assert code == 3
    assert_one_sentence(err, "demo")
    assert f"{path} is written all the same" in err
    assert path.read_bytes().startswith(b"\x89PNG")


@no_output
def test_a_command_that_prints_nothing_needs_no_output(
    without_output, names, model, tmp_path, kind
):
    out = tmp_path / "out.csv"
    code, err = without_output(NO_OUTPUT[kind][0](), "predict", model, names, "-o", out)
    assert code == 0 and err.startswith("error: ")
    assert len(out.read_text("utf-8").splitlines()) == 201


@no_output
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["fit", "--help"]])
def test_help_that_cannot_be_printed(without_output, kind, args):
    code, err = without_output(NO_OUTPUT[kind][0](), *args)
    assert code == 2 and "Traceback" not in err
    assert "standard output cannot be written" in err


@pytest.mark.parametrize("kind", [lambda: None, lambda: full(True)])
def test_standard_error_may_be_missing(
    run, names, model, tmp_path, monkeypatch, capsys, kind
):
    expected = run("predict", model, names)[1]
    monkeypatch.setattr(sys, "stderr", kind())
    for args, code in (
        (["predict", model, names], 0),
        (["fit", names, tmp_path / "new", "--label", "sex", "--progress"], 0),
        (["fit", tmp_path / "absent", tmp_path / "new"], 2),
        (["fit"], 2),
    ):
        assert main([str(arg) for arg in args]) == code
        out = capsys.readouterr().out
        if args[0] == "predict":  # its error is no part of the predictions
            assert out == expected


def test_files_that_cannot_be_written_are_named(run, names, model, monkeypatch):
    def refuse(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    before = model.read_bytes()
    code, out, err = run("fit", names, model, "--label", "sex")
    assert (code, out) == (2, "")
    assert err == f"maxent fit: {model}: No space left on device\n"
    assert model.read_bytes() == before


# ----------------------------------------------------------------------- ASCII only


def ascii_output():
    return io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True)


def printed(stream):
    return stream.buffer.getvalue().decode("ascii")


def test_reports_escape_what_the_output_cannot_encode(
    without_output, names, model, tmp_path
):
    stream = ascii_output()
    path = tmp_path / "größer.npz"
    code, err = without_output(stream, "fit", names, path, "--label", "sex")
    assert (code, err) == (0, "")
    assert r"M\xe4nnchen (100), Weibchen \u2640 (100)" in printed(stream)
    assert r"gr\xf6\xdfer.npz" in printed(stream)
    stream = ascii_output()
    assert without_output(stream, "info", model) == (0, "")
    assert r"FL \xb5m" in printed(stream)
    stream = ascii_output()
    assert without_output(stream, "demo", "-o", tmp_path / "ä.png") == (0, "")
    assert r"\xe4.png" in printed(stream)


def test_predictions_are_refused_rather_than_escaped(
    without_output, names, model, tmp_path
):
    stream = ascii_output()
    code, err = without_output(stream, "predict", model, names)
    assert (code, printed(stream)) == (2, "")
    assert_one_sentence(err, "predict")
    assert "its encoding ascii lacks" in err and "with -o" in err
    out = tmp_path / "out.csv"
    assert without_output(ascii_output(), "predict", model, names, "-o", out)[0] == 0
    assert read_rows(out.read_text("utf-8"))[1] == ["Männchen"]
    stream = ascii_output()
    stream.reconfigure(errors="replace")  # asked for by the user
    assert without_output(stream, "predict", model, names)[0] == 0
    assert printed(stream).splitlines()[1] == "M?nnchen"


# ---------------------------------------------------------------- in real processes

CLOSE = (
    "import os, sys; os.close({}); "
    "os.execv(sys.executable, [sys.executable, '-m', 'maxent.cli', *sys.argv[1:]])"
)
needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="there is no /dev/full"
)


def ended_process(process):
    out, err = process.communicate(timeout=HUNG)
    assert "Traceback" not in err and "Exception" not in err
    return process.returncode, out, err


def test_a_process_with_closed_streams(run, names, tmp_path):
    model = tmp_path / "m.npz"
    assert run("fit", names, model, "--label", "sex")[0] == 0
    code, _, err = ended_process(
        start("-c", CLOSE.format(1), "info", model, stderr=subprocess.PIPE)
    )
    assert code == 2
    assert_one_sentence(err, "info")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start("-c", CLOSE.format(2), "predict", model, names, **pipes)
    code, out, err = ended_process(process)
    assert (code, err) == (0, "")
    assert out.startswith("prediction\n") and "error" not in out


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_process_with_full_streams(model, tmp_path, unbuffered):
    env = {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as device:
        process = start(
            *("-m", "maxent.cli", "info", model),
            **{"env": env, "stdout": device, "stderr": subprocess.PIPE},
        )
        code, _, err = ended_process(process)
        assert code == 2  # not the interpreter's 120
        assert_one_sentence(err, "info")
        process = start(
            *("-m", "maxent.cli", "info", tmp_path / "absent"),
            **{"env": env, "stdout": subprocess.PIPE, "stderr": device},
        )
        out, _ = process.communicate(timeout=HUNG)
        assert (process.returncode, out) == (2, "")


@pytest.mark.skipif(sys.platform == "win32", reason="encodings of POSIX locales")
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_process_in_an_ascii_locale(model, env):
    kept = {"PYTHONIOENCODING": "", "PYTHONUTF8": ""}
    process = start(
        *("-m", "maxent.cli", "info", model),
        **{"env": {**kept, **env}, "stdout": subprocess.PIPE},
        stderr=subprocess.PIPE,
    )
    process.stdout.reconfigure(encoding="utf-8")
    code, out, err = ended_process(process)
    assert (code, err) == (0, "")
    assert "FL µm" in out or r"FL \xb5m" in out


def test_the_reader_of_a_demo_may_leave_early(tmp_path):
    picture = tmp_path / "demo.png"
    process = start(
        *("-m", "maxent.cli", "demo", "kernels", "-o", picture),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=HUNG) == 141
    assert err == ""
    assert picture.exists()
