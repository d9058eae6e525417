"""``maxent info``: check a model file, print its contents, run nothing of it."""

import os

import numpy as np

from maxent._commands.contents import summary
from maxent._commands.outcome import CommandError, Outcome, aligned, listed
from maxent._commands.reports import as_json, certificate
from maxent._persistence.calibrated import CALIBRATED
from maxent._persistence.persistence import ModelFileError, read_model

__all__ = ["info"]


def info(args):
    """Check a model file and print its contents."""
    try:
        model = read_model(args.model)
    except ModelFileError as error:
        raise CommandError(error) from None
    size = os.path.getsize(args.model)
    if args.json:
        return Outcome(_contents(model, size))
    if args.quiet:
        return Outcome()
    return Outcome(aligned(_lines(args.model, model, size)))


def _lines(path, model, size):
    lines = [
        ("file", f"{path}, {size} bytes, format {model.format_version}"),
        ("checksum", f"ok (SHA-256 {model.checksum[:16]}...)"),
        ("written by", f"maxent {model.maxent_version}"),
        ("class", model.class_name),
    ]
    machine = _machine(model)
    params, fitted = machine["params"], machine["fitted"]
    if model.class_name == "Pipeline":
        for name, step in model.params["steps"]:
            lines.append((f"step {name}", step["class"]))
            lines += _parameter_lines(step["params"])
        params = {}
    elif model.class_name == CALIBRATED:
        lines.append(("machine", machine["class"]))
    lines += _parameter_lines(params)
    if "n_features_in_" in fitted:
        lines.append(("features", fitted["n_features_in_"]))
    if model.extra.get("feature_names"):
        lines.append(("  names", listed(model.extra["feature_names"])))
    if "classes_" in fitted:
        lines.append(("classes", listed(fitted["classes_"])))
    if "standardize" in model.extra:
        scaled = "no" if model.extra["standardize"] is None else "yes"
        lines.append(("standardized", scaled))
    weights = model.extra.get("class_weight")
    if weights is not None:
        lines.append(("class weights", _brief(weights)))
    lines += _column_lines(model.extra.get("columns"), model.extra.get("feature_names"))
    lines += summary(machine, model.extra.get("feature_names"))
    if isinstance(fitted.get("offset_"), float):
        text = f"scores below {fitted['offset_']:.8g} are outliers"
        lines.append(("threshold", text))
        lines.append(("level", f"{fitted.get('level_', float('nan')):.8g}"))
    lines += certificate(fitted)
    for name, value in fitted.items():
        if getattr(value, "ndim", 0):
            lines.append((f"  {name}", f"{value.shape} {value.dtype}"))
    return lines


def _machine(model):
    """Class, parameters and fitted state of the last step, or inside a calibration."""
    found = {"class": model.class_name, "params": model.params, "fitted": model.fitted}
    if model.class_name == "Pipeline":
        found = model.params["steps"][-1][1]
    if found["class"] == CALIBRATED:
        found = _calibrated_machine(found["fitted"])
    return found


def _calibrated_machine(fitted):
    """State of the first machine inside a calibrated classifier."""
    machines = fitted.get("estimators_")
    if not isinstance(machines, list) or not isinstance(machines[0], dict):
        raise CommandError("the calibrated classifier of the file holds no machine")
    return machines[0]


def _column_lines(columns, names):
    if not isinstance(columns, dict) or not any(columns.get("text", ())):
        return []
    text = [j for j, is_text in enumerate(columns["text"]) if is_text]
    return [("columns of text", listed(names[j] if names else j for j in text))]


def _parameter_lines(params):
    return [(f"  {name}", _brief(value)) for name, value in params.items()]


def _brief(value):
    """Text of a parameter; of arrays shape and dtype, wherever they are."""
    if getattr(value, "ndim", 0):
        return f"{value.shape} {value.dtype}"
    if isinstance(value, dict):
        inside = (f"{name}: {_brief(part)}" for name, part in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, (list, tuple)) and any(
        isinstance(part, (dict, np.ndarray)) for part in value
    ):
        return f"[{', '.join(map(_brief, value))}]"
    return repr(value)


# ----------------------------------------------------------------------------- JSON


def _contents(model, size):
    """One JSON object: what the file says, of large arrays shape and dtype."""
    contents = {
        "class": model.class_name,
        "bytes": size,
        "format": model.format_version,
        "sha256": model.checksum,
        "maxent": model.maxent_version,
        "params": model.params,
        "fitted": model.fitted,
        "extra": model.extra,
    }
    return as_json(contents)
