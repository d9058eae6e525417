"""``maxent demo``: demonstrations of methods.  Imports nothing heavy."""

import importlib

from maxent._commands.outcome import CommandError, Outcome
from maxent._commands.pictures import check_picture
from maxent._commands.console import tell

__all__ = ["DEMOS", "demo"]

DEMOS = {
    "discriminate": "large-margin machines on the Leptograpsus crabs",
    "kernels": "product kernels between models of DNA sequences, over the horizon",
    "latent": "Gaussian mixtures: candidates of EM, and the one of greatest entropy",
    "motif": "a motif planted somewhere in DNA sequences, found from labels",
    "outliers": "made crabs among true ones, found by densities of the true ones",
}


def demo(args):
    """Run a demonstration; print a report and draw a picture."""
    if args.list:
        width = max(map(len, DEMOS))
        return Outcome("".join(f"{n:<{width}}  {text}\n" for n, text in DEMOS.items()))
    if args.demo_seed < 0:
        raise CommandError(f"--seed {args.demo_seed} is negative; use 0, 1, 2 ...")
    picture = _picture(args)
    run = importlib.import_module(f"maxent._commands.demos.{args.name}").run_demo
    outcome = run(args.demo_seed)
    report, picture = outcome.drawn(picture)
    if not outcome.converged:
        tell("maxent demo: a fit did not reach its tolerance")
    return Outcome("" if args.quiet else report, 1 - outcome.converged, picture)


def _picture(args):
    """Path of the picture, checked; None for no picture."""
    if args.no_picture:
        return None
    ending = "" if args.name == "discriminate" else f"-{args.name}"
    picture = args.output or f"maxent-demo{ending}.png"
    check_picture("-o", picture)
    return picture
