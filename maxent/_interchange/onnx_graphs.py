"""Machines and pipelines as ONNX graphs of plain operators, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxent._interchange.machines import Machine, machine_of
from maxent._support import validation as v
from maxent._support.files import whole_file
from maxent._support.typing import PathLike
from maxent._version import __version__
from maxent.discrimination._one_vs_one import pairs_of

_OPSET = 17
_IR_VERSION = 8
_DOMAIN = "maxent"


class Graph:
    """Nodes and constants of a graph, before they have names in a model.

    Attributes
    ----------
    nodes : list of tuple
        (operator, inputs, output, attributes).
    constants : dict {str: ndarray}
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def node(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; arrays among the inputs become constants. Its output's name."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        output = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append((operator, names, output, attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a constant, and return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name


def _number_type(dtype):
    from onnx import TensorProto

    return {"float64": TensorProto.DOUBLE, "float32": TensorProto.FLOAT}[dtype]


def _kernel_values(graph: Graph, x: str, machine: Machine) -> str:
    """Kernel values (n, m) of the rows of x, or x itself."""
    if machine.rows is None:
        return x
    if machine.kernel == "rbf":
        # distances from the middle of the rows, where fewer digits cancel
        centre = machine.rows.mean(axis=0) if len(machine.rows) else 0.0
        Z = machine.rows - centre
        x = graph.node("Sub", x, np.broadcast_to(centre, machine.n_features).copy())
        own = graph.node("ReduceSum", graph.node("Mul", x, x), np.array([1]))
        inner = graph.node("MatMul", x, -2.0 * Z.T)
        squared = graph.node("Add", graph.node("Add", inner, own), (Z * Z).sum(axis=1))
        squared = graph.node("Max", squared, np.array(0.0))
        return graph.node("Exp", graph.node("Mul", squared, np.array(-machine.gamma)))
    inner = graph.node("MatMul", x, machine.rows.T)
    if machine.kernel == "linear":
        return inner
    inner = graph.node("Mul", inner, np.array(machine.gamma))
    inner = graph.node("Add", inner, np.array(machine.coef0))
    if machine.kernel == "sigmoid":
        return graph.node("Tanh", inner)
    return graph.node("Pow", inner, np.array(float(machine.degree)))


def machine_graph(
    machine: Machine, x: str, number_type: int
) -> tuple[Graph, list[str]]:
    """Graph of a machine, and the names of its outputs.

    Regressors have one, (n, 1). Others have labels (n,) and, as far as they have
    them, probabilities (n, n_classes), else decision values (n,) or (n, n_classes).

    Parameters
    ----------
    machine : Machine
    x : str
        Name of the input (n, n_features).
    number_type : int
        ONNX's number of the type of the outputs.
    """
    from onnx import TensorProto

    graph = Graph()
    x = graph.node("Cast", x, to=TensorProto.DOUBLE)
    values = _kernel_values(graph, x, machine)
    f = graph.node("Add", graph.node("MatMul", values, machine.weights), machine.bias)
    if machine.kind == "target":
        return graph, [graph.node("Cast", f, to=number_type)]
    if machine.kind == "pairs":
        f = _votes(graph, f, machine)
    if machine.kind in ("two", "outliers"):
        flat = graph.node("Reshape", f, np.array([-1]))
        operator = "Greater" if machine.kind == "two" else "GreaterOrEqual"
        place = graph.node(operator, flat, np.array(0.0))
        place = graph.node("Cast", place, to=TensorProto.INT64)
    else:
        flat = f
        place = graph.node("ArgMax", f, axis=1, keepdims=0)
    classes = np.array([-1, 1]) if machine.classes is None else machine.classes
    label = graph.node("Gather", _label_array(classes), place)
    scores = flat if machine.rate is None else _probabilities(graph, f, machine)
    return graph, [label, graph.node("Cast", scores, to=number_type)]


def _votes(graph, f, machine):
    """Votes and their confidence (n, n_classes), from scores of pairs (n, n_pairs)."""
    from onnx import TensorProto

    pairs, K = pairs_of(len(machine.classes)), len(machine.classes)
    sign = np.zeros((len(pairs), K))
    for k, (i, j) in enumerate(pairs):
        sign[k, j], sign[k, i] = 1.0, -1.0
    later = graph.node("Greater", f, np.array(0.0))
    later = graph.node("Cast", later, to=TensorProto.DOUBLE)
    votes = graph.node("MatMul", later, sign)
    votes = graph.node("Add", votes, (sign < 0).sum(axis=0).astype(float))
    sure = graph.node("MatMul", f, sign)
    below = graph.node("Add", graph.node("Abs", sure), np.array(1.0))
    below = graph.node("Mul", below, np.array(3.0))
    return graph.node("Add", votes, graph.node("Div", sure, below))


def _probabilities(graph, f, machine):
    if machine.kind == "two":
        both = graph.node("MatMul", f, np.array([[-machine.rate, machine.rate]]))
        return graph.node("Sigmoid", both)
    f = graph.node("Mul", f, np.array(float(machine.rate)))
    return graph.node("Softmax", f, axis=1)


def _label_array(classes):
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    return np.array([str(label) for label in classes], dtype=object)


def to_onnx(
    estimator: Any,
    path: PathLike | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """Return a machine, or a pipeline that ends in one, as an ONNX model.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted MEDClassifier, MEDRegressor, MEDFeatureSelector, MEDRegressionSelector,
        MaxEntClassifier, or MEDOutlierDetector with a GaussianScores model; kernels
        are "linear", "rbf", "poly" and "sigmoid". A pipeline of these with steps that
        skl2onnx knows, on numbers, needs skl2onnx.
    path : str or path-like, optional
        Of a file to write, whole or not at all.
    dtype : {"float64", "float32"}, default="float64"
        Of the input ``X`` and of the numbers that come out. The machine itself computes
        in double precision; steps of scikit-learn compute in `dtype`.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` (n, n_features). Outputs: ``variable`` (n, 1) of regressors;
        else ``label`` (n,) and ``probabilities`` (n, n_classes) where the estimator
        has ``predict_proba``, or ``decision`` (n,) or (n, n_classes).

    Raises
    ------
    ImportError
        Without onnx, or for a pipeline without skl2onnx.
    TypeError
        For another estimator.
    ValueError
        For other kernels.

    See Also
    --------
    register_onnx_converters : For skl2onnx.to_onnx, and columns of several types.
    to_libsvm : Model files of LIBSVM.

    Examples
    --------
    With onnx and onnxruntime:

    .. code-block:: python

       model = maxent.MEDClassifier().fit(X, y)
       maxent.to_onnx(model, "model.onnx")
       session = onnxruntime.InferenceSession("model.onnx")
       label, decision = session.run(None, {"X": X})
    """
    _needed("onnx", "to_onnx makes ONNX models")
    v.check_choice("dtype", dtype, ("float64", "float32"))
    if type(estimator).__name__ == "Pipeline":
        model = _of_pipeline(estimator, dtype)
    else:
        model = _of_machine(machine_of(estimator), dtype)
    if path is not None:
        with whole_file(path) as stream:
            stream.write(model.SerializeToString())
    return model


def _needed(name, why):
    """Import a package, or raise the error that says how to install it."""
    import importlib

    try:
        importlib.import_module(name)
    except ImportError:
        raise ImportError(f"{why} by {name}: pip install {name}.") from None


def _output_names(machine):
    if machine.kind == "target":
        return ["variable"]
    return ["label", "decision" if machine.rate is None else "probabilities"]


def _of_machine(machine, dtype):
    from onnx import TensorProto, checker, helper, numpy_helper

    number = _number_type(dtype)
    graph, found = machine_graph(machine, "X", number)
    names = _output_names(machine)
    renamed = dict(zip(found, names, strict=True))
    nodes = [
        helper.make_node(
            operator,
            [renamed.get(one, one) for one in inputs],
            [renamed.get(output, output)],
            **attributes,
        )
        for operator, inputs, output, attributes in graph.nodes
    ]
    constants = [numpy_helper.from_array(x, n) for n, x in graph.constants.items()]
    shapes, types = [["n", 1]], [number]
    if machine.kind != "target":
        K = 2 if machine.classes is None else len(machine.classes)
        flat = machine.rate is None and machine.kind in ("two", "outliers")
        shapes = [["n"], ["n"] if flat else ["n", K]]
        types = [_label_type(machine, TensorProto), number]
    described = [
        helper.make_tensor_value_info(*one)
        for one in zip(names, types, shapes, strict=True)
    ]
    x = helper.make_tensor_value_info("X", number, ["n", machine.n_features])
    model = helper.make_model(
        helper.make_graph(nodes, "machine", [x], described, constants),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name=_DOMAIN,
        producer_version=__version__,
    )
    checker.check_model(model)
    return model


def _label_type(machine, types):
    classes = np.array([-1]) if machine.classes is None else machine.classes
    kind = _label_array(classes).dtype.kind
    return {"i": types.INT64, "f": types.DOUBLE}.get(kind, types.STRING)


def _of_pipeline(pipeline, dtype):
    _needed("skl2onnx", "steps of scikit-learn are converted")
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(pipeline)
    machine = machine_of(pipeline[-1])
    register_onnx_converters()
    kind = {"float64": DoubleTensorType, "float32": FloatTensorType}[dtype]
    return convert_sklearn(
        pipeline,
        initial_types=[("X", kind([None, pipeline.n_features_in_]))],
        final_types=None,
        target_opset={"": _OPSET, "ai.onnx.ml": 3},
        options={id(pipeline[-1]): {"zipmap": False}} if machine.classes is not None
        else None,
    )  # fmt: skip


def register_onnx_converters() -> None:
    """Register the machines of this package with skl2onnx.

    Afterwards ``skl2onnx.to_onnx`` and ``skl2onnx.convert_sklearn`` convert pipelines
    and ColumnTransformers that end in a machine that :func:`to_onnx` takes.

    Raises
    ------
    ImportError
        Without skl2onnx.

    See Also
    --------
    to_onnx : Machines, and pipelines of numbers.

    Examples
    --------
    With skl2onnx, a pipeline whose columns are of several types:

    .. code-block:: python

       maxent.register_onnx_converters()
       graph = skl2onnx.to_onnx(pipeline, frame[:1], target_opset=17)
    """
    _needed("skl2onnx", "pipelines are converted")
    from skl2onnx import update_registered_converter

    from maxent import discrimination as d
    from maxent import latent

    classifiers = (d.MEDClassifier, d.MEDFeatureSelector, latent.MaxEntClassifier)
    for cls in (*classifiers, d.MEDRegressor, d.MEDRegressionSelector):
        options = {"zipmap": [False, True, "columns"], "nocl": [False, True]}
        update_registered_converter(
            cls,
            f"Maxent{cls.__name__}",
            _shapes,
            _convert,
            overwrite=True,
            options=options if cls in classifiers else None,
        )


def _shapes(operator):
    """Types and shapes of the outputs of an operator of skl2onnx."""
    from skl2onnx.common.data_types import (
        DoubleTensorType,
        Int64TensorType,
        StringTensorType,
    )

    machine = machine_of(operator.raw_operator)
    x = operator.inputs[0].type
    number = DoubleTensorType if isinstance(x, DoubleTensorType) else type(x)
    if "Double" not in number.__name__ and "Float" not in number.__name__:
        number = DoubleTensorType
    if machine.kind == "target":
        operator.outputs[0].type = number([None, 1])
        return
    assert machine.classes is not None
    kind = _label_array(machine.classes).dtype.kind
    labels = {"i": Int64TensorType, "f": DoubleTensorType}.get(kind, StringTensorType)
    operator.outputs[0].type = labels([None])
    two = machine.kind == "two" and machine.rate is None
    operator.outputs[1].type = number([None] if two else [None, len(machine.classes)])


def _convert(scope, operator, container):
    """Add the graph of a machine to a container of skl2onnx."""
    from onnx import TensorProto

    machine = machine_of(operator.raw_operator)
    is_float = "Float" in type(operator.outputs[-1].type).__name__
    number = TensorProto.FLOAT if is_float else TensorProto.DOUBLE
    x = operator.inputs[0].full_name
    graph, found = machine_graph(machine, x, number)
    names = {x: x}
    names |= {a: b.full_name for a, b in zip(found, operator.outputs, strict=True)}
    types = {"f": TensorProto.DOUBLE, "i": TensorProto.INT64, "O": TensorProto.STRING}
    for name, value in graph.constants.items():
        names[name] = scope.get_unique_variable_name(name)
        flat = value.ravel().tolist()
        if value.dtype.kind == "O":
            flat = [text.encode() for text in flat]
        container.add_initializer(
            names[name], types[value.dtype.kind], list(value.shape), flat
        )
    for kind, inputs, output, attributes in graph.nodes:
        names.setdefault(output, scope.get_unique_variable_name(output))
        container.add_node(
            kind,
            [names[one] for one in inputs],
            [names[output]],
            op_version=_OPSET,
            name=scope.get_unique_operator_name(kind),
            **attributes,
        )
