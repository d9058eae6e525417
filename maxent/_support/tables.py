"""Values as short text, and as small tables of HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import numpy as np

_ENTRIES = 12  # of arrays that are shown whole
_LONGEST = 200  # characters of another value
_STYLE = "text-align: left; vertical-align: top"


def short(value: Any) -> str:
    """A value in one line; of large arrays the shape alone."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.size > _ENTRIES:
        return f"<array of shape {value.shape}>"
    return " ".join(np.array2string(value, separator=", ", precision=6).split())


def html_table(title: str, values: Mapping[str, Any]) -> str:
    """Names and values as an HTML table, escaped.

    Parameters
    ----------
    title : str
    values : dict {str: value}

    Returns
    -------
    str
        Without styles from elsewhere. Large arrays have their shape and range, values
        that are long as text their beginning.
    """
    rows = "".join(
        f'<tr><td style="{_STYLE}">{html.escape(str(name))}</td>'
        f'<td style="{_STYLE}"><code>{html.escape(_cell(value))}</code></td></tr>'
        for name, value in values.items()
    )
    return (
        f'<table><thead><tr><th colspan="2" style="{_STYLE}">{html.escape(title)}</th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def _cell(value):
    text = short(value)
    if isinstance(value, np.ndarray) and value.size > _ENTRIES:
        if value.dtype.kind in "iuf" and np.isfinite(value).all():
            text = f"array {value.shape} from {value.min():.6g} to {value.max():.6g}"
        else:
            text = f"array {value.shape}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class HtmlTable:
    """Mixin of values: notebooks show their parameters as a table."""

    def _shown_in_table(self) -> Mapping[str, Any]:
        """Parameters by name."""
        return self.parameters()  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._shown_in_table())
