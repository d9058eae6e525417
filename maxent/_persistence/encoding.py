"""Values as JSON and arrays, without pickle: the contents of a model file.

JSON holds numbers, strings, booleans, null and lists as they are.  Everything else is
an object with one key that says what it is: ``__float__`` (nan, inf, -inf),
``__scalar__`` (NumPy scalars), ``__tuple__``, ``__dict__`` (pairs), ``__array__``,
``__csr__``, ``__class__`` (of a fixed registry), ``__value__`` (such a class and its
specification), ``__estimator__`` (one of a fixed registry, its parameters and fitted
state); inside transformers of scikit-learn also ``__slice__``, ``__dtype__``,
``__type__`` (of numbers and text) and ``__objects__`` (an array of other values).
Decoding builds these from data and calls nothing that the data names, but for the
classes of that registry.
"""

import enum
import math

import numpy as np

__all__ = ["MAX_NDIM", "Decoder", "Encoder", "is_portable"]

MAX_NDIM = 8
_BUILTIN = {cls.__name__: cls for cls in (bool, int, float, str, object)}
_ITEM_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}


def is_portable(dtype):
    """True if a model file may hold arrays of this dtype (of either byte order)."""
    if dtype.kind == "U":
        return dtype.itemsize > 0
    return dtype.itemsize in _ITEM_SIZES.get(dtype.kind, ())


class Encoder:
    """Turns values into JSON and sets arrays aside.

    Parameters
    ----------
    registry : dict {str: str}
        Name -> "module:class" of the objects that are kept as their specification,
        what their method ``get_spec`` returns.
    state_of : callable(estimator), optional
        Name, parameters and fitted attributes of an estimator inside another, as a
        pipeline has them; None for what is no estimator.
    foreign : collection of str, optional
        Names of the estimators that are of another library.
    """

    def __init__(self, registry, state_of=None, foreign=()):
        self.registry = registry
        self.state_of = state_of
        self.foreign = foreign
        self._depth = 0  # of estimators of another library around a value
        self.arrays = {}

    def mapping(self, values, label):
        """Encode a dict with string keys; `label` names an entry in errors."""
        for key in values:
            if not isinstance(key, str):
                raise TypeError(f"{label.format(repr(key))}: names must be strings")
        return {
            key: self.value(values[key], label.format(key)) for key in sorted(values)
        }

    def value(self, value, what):
        if isinstance(value, np.generic):
            return self._scalar(value, what)
        if isinstance(value, enum.Enum):
            return self.value(value.value, what)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return _encode_float(value)
        if isinstance(value, np.ndarray):
            return self._array(value, what)
        if isinstance(value, list):
            return [self.value(item, what) for item in value]
        if isinstance(value, tuple):
            return {"__tuple__": [self.value(item, what) for item in value]}
        if isinstance(value, dict):
            pairs = [
                [self._key(key, what), self.value(item, what)]
                for key, item in value.items()
            ]
            return {"__dict__": pairs}
        return self._other(value, what)

    def _other(self, value, what):
        if self._is_known(value):
            return {"__class__": value.__qualname__}
        cls = type(value)
        name = cls.__qualname__
        known = self._is_known(cls)
        if known or (cls.__module__.startswith("maxent.") and hasattr(cls, "get_spec")):
            try:
                spec = value.get_spec()
            except ValueError as error:  # a prior made of functions
                raise TypeError(f"{what}: {error}") from None
            if known:
                return {"__value__": [name, self.value(spec, what)]}
        state = None if self.state_of is None else self.state_of(value)
        if state is not None:
            inside = f"{{}} of {state[0]}, {what}"
            self._depth += state[0] in self.foreign
            encoded = [self.mapping(part, inside) for part in state[1:]]
            self._depth -= state[0] in self.foreign
            return {"__estimator__": [state[0], *encoded]}
        if self._depth:
            plain = self._foreign(value, what)
            if plain is not None:
                return plain
        if cls.__module__.startswith("scipy.sparse"):
            return self._sparse(value, what)
        if callable(value) and not isinstance(value, type):
            name = getattr(value, "__qualname__", cls.__qualname__)
            remedy = 'fit with kernel="precomputed" or with a named kernel'
            if self._depth:
                remedy = "skops.io.dump saves such pipelines"
            raise TypeError(
                f"{what} is the function {name}, and functions cannot be saved without "
                f"pickle; {remedy}"
            )
        remedy = (
            "numbers, strings, None, arrays, CSR matrices, lists, tuples and dicts can "
            "be saved"
        )
        if hasattr(cls, "hidden_sizes"):  # a feature map of M3EModel
            remedy = "list the features and fit with feature_map='ragged'"
        raise TypeError(
            f"{what} is of type {cls.__module__}.{cls.__qualname__}, which a model "
            f"file cannot hold; {remedy}"
        )

    def _foreign(self, value, what):
        """Values that transformers of scikit-learn have besides; None for others."""
        if isinstance(value, slice):
            ends = value.start, value.stop, value.step
            return {"__slice__": [self.value(end, what) for end in ends]}
        if isinstance(value, np.dtype):
            return {"__dtype__": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"__type__": np.dtype(value).str}
        if isinstance(value, type) and _BUILTIN.get(value.__name__) is value:
            return {"__type__": value.__name__}
        return None

    def _is_known(self, cls):
        """True of a class of the registry."""
        name = getattr(cls, "__qualname__", "")
        return isinstance(cls, type) and (
            self.registry.get(name) == f"{cls.__module__}:{name}"
        )

    def _key(self, key, what):
        if key is None or isinstance(key, (bool, int, float, str, tuple, np.generic)):
            return self.value(key, what)
        raise TypeError(
            f"{what} is a dict with the key {key!r}; keys must be numbers, "
            "strings or tuples of them"
        )

    def _scalar(self, value, what):
        dtype = _portable_dtype(value.dtype, what)
        item = value.item()
        if isinstance(item, float):
            item = _encode_float(item)
        return {"__scalar__": [dtype.str if dtype.kind != "U" else "<U", item]}

    def _array(self, array, what):
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(f"{what} is a masked array; save its data and its mask")
        strings = array.dtype == object
        items = array.ravel().tolist() if strings and self._depth else []
        if not all(isinstance(item, str) for item in items):
            encoded = [self.value(item, what) for item in items]
            return {"__objects__": [list(array.shape), encoded]}
        if strings:
            array = _as_unicode(array, what)
        dtype = _portable_dtype(array.dtype, what)
        if array.ndim > MAX_NDIM:
            raise TypeError(f"{what} has {array.ndim} axes; at most {MAX_NDIM} can be")
        # A strided view is written as a copy in C order; Fortran order is kept.
        plain = np.asarray(array, dtype=dtype, order="A")
        if not (plain.flags.c_contiguous or plain.flags.f_contiguous):
            plain = np.ascontiguousarray(plain)
        name = f"a{len(self.arrays)}"
        self.arrays[name] = plain
        return {"__array__": name, "object": True} if strings else {"__array__": name}

    def _sparse(self, value, what):
        if getattr(value, "format", None) != "csr" or value.ndim != 2:
            raise TypeError(
                f"{what} is a sparse array in {getattr(value, 'format', '?')} format; "
                "convert it with .tocsr() to save it"
            )
        return {
            "__csr__": {
                "kind": "matrix" if type(value).__name__ == "csr_matrix" else "array",
                "shape": [int(n) for n in value.shape],
                "data": self._array(value.data, what),
                "indices": self._array(value.indices, what),
                "indptr": self._array(value.indptr, what),
            }
        }


def _encode_float(value):
    if math.isfinite(value):
        return float(value)
    return {"__float__": "nan" if math.isnan(value) else str(float(value))}


def _portable_dtype(dtype, what):
    """Little-endian counterpart of a dtype that model files may hold."""
    if dtype.kind == "U":
        return np.dtype("<U1") if dtype.itemsize == 0 else dtype.newbyteorder("<")
    if not is_portable(dtype):
        raise TypeError(
            f"{what} has dtype {dtype}, which a model file cannot hold; booleans, "
            "integers, floats up to 64 bits and unicode strings can be saved"
        )
    return dtype.newbyteorder("<")


def _as_unicode(array, what):
    items = array.ravel().tolist()
    if not all(isinstance(item, str) for item in items):
        kinds = sorted({type(item).__name__ for item in items} - {"str"})
        raise TypeError(
            f"{what} is an array of Python objects ({', '.join(kinds)}), which cannot "
            "be saved without pickle; use numbers or strings, for labels too"
        )
    width = max((len(item) for item in items), default=1) or 1
    text = np.array(items, dtype=f"<U{width}").reshape(array.shape)
    if text.ravel().tolist() != items:
        raise TypeError(
            f"{what} holds strings that end in a NUL character, which NumPy drops; "
            "strip them first"
        )
    return text


class Decoder:
    """Builds values from JSON and arrays; the inverse of `Encoder`.

    Parameters
    ----------
    arrays : dict {str: ndarray}
    make : callable(name, spec)
        What becomes of a class name and a specification, a dict.
    make_estimator : callable(name, params, fitted), optional
        What becomes of an estimator inside another.
    class_of : callable(name), optional
        The class of a name.
    """

    def __init__(self, arrays, make, make_estimator=None, class_of=None):
        self.arrays = arrays
        self.class_of = class_of
        self.make = make
        self.make_estimator = make_estimator

    def mapping(self, values):
        return {str(key): self.value(value) for key, value in values.items()}

    def value(self, value):
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        tags = [key for key in value if key.startswith("__")]
        if len(tags) != 1:
            raise ValueError("an entry of the metadata has no single kind")
        tag = tags[0]
        content = value[tag]
        if tag == "__float__":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]
        if tag == "__scalar__":
            return self._scalar(content)
        if tag == "__tuple__":
            return tuple(self.value(item) for item in content)
        if tag == "__dict__":
            return {self.value(key): self.value(item) for key, item in content}
        if tag == "__array__":
            return self._array(content, value.get("object") is True)
        if tag == "__csr__":
            return self._csr(content)
        if tag == "__value__":
            return self._value(content)
        if tag == "__class__":
            return self.class_of(content)
        if tag in ("__slice__", "__dtype__", "__type__", "__objects__"):
            return self._foreign(tag, content)
        if tag == "__estimator__" and self.make_estimator is not None:
            name, params, fitted = content
            return self.make_estimator(name, self.mapping(params), self.mapping(fitted))
        raise ValueError(f"an entry of the metadata is of the unknown kind {tag!r}")

    def _foreign(self, tag, content):
        if tag == "__slice__":
            start, stop, step = map(self.value, content)
            return slice(start, stop, step)
        if tag == "__type__" and content in _BUILTIN:
            return _BUILTIN[content]
        if tag == "__objects__":
            shape, items = content
            flat = np.empty(len(items), dtype=object)
            for i, item in enumerate(items):
                flat[i] = self.value(item)
            return flat.reshape(shape)
        dtype = np.dtype(str(content))
        return dtype if tag == "__dtype__" else dtype.type

    def _value(self, content):
        name, spec = content
        spec = self.value(spec)
        if not isinstance(name, str) or not isinstance(spec, dict):
            raise ValueError("a value has no class name or no specification")
        return self.make(name, spec)

    def _scalar(self, content):
        code, item = content
        dtype = np.dtype(code)
        if dtype.kind == "U":
            return np.str_(item)
        if not is_portable(dtype):
            raise ValueError(f"a number of the unexpected type {dtype}")
        return dtype.newbyteorder("=").type(self.value(item))

    def _array(self, name, strings):
        array = self.arrays[name]
        if array.dtype.kind == "b":
            array = np.asarray(array.view(np.uint8) != 0)
        if array.dtype.kind == "U" and array.size:
            codes = array.ravel(order="K").view(np.uint32)
            if codes.max() > 0x10FFFF:
                raise ValueError(f"array {name!r} holds impossible characters")
        if strings and array.dtype.kind != "U":
            raise ValueError(f"array {name!r} should hold strings")
        dtype = np.dtype(object) if strings else array.dtype.newbyteorder("=")
        return array.astype(dtype, copy=False)

    def _csr(self, content):
        from scipy import sparse

        make = {"matrix": sparse.csr_matrix, "array": sparse.csr_array}
        parts = [self.value(content[key]) for key in ("data", "indices", "indptr")]
        result = make[content["kind"]](tuple(parts), shape=tuple(content["shape"]))
        result.check_format(full_check=True)
        return result
