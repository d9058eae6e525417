"""Inventories of other projects' documentation, fetched only if a network is there.

intersphinx warns about an inventory that it cannot fetch, and a build that takes
warnings as errors fails. Here they are fetched before, without a word where that is
impossible, and given to it as files: without them names are shown without links.
"""

from __future__ import annotations

import urllib.request
import zlib
from http.client import HTTPException
from pathlib import Path

ADDRESSES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
}


def is_inventory(content):
    """Whether bytes are a whole inventory, not the page of some portal."""
    head, _, body = content.partition(b"using zlib.\n")
    if not head.startswith(b"# Sphinx inventory version 2"):
        return False
    try:
        return bool(zlib.decompress(body))
    except zlib.error:
        return False


def fetch(folder, addresses=None, timeout=5.0):
    """Mapping for intersphinx: the inventories that were fetched now or before.

    Parameters
    ----------
    folder : path-like
        Where the inventories are kept from one build to the next.
    addresses : dict, default ADDRESSES
        Address of the documentation, with a slash at its end, by name of project.
    timeout : float
        Seconds to wait for an answer. After the first failure no other is asked.

    Returns
    -------
    dict
        (address, file) by name of project; empty without a network.
    """
    folder = Path(folder)
    found, reachable = {}, True
    for name, address in (ADDRESSES if addresses is None else addresses).items():
        file = folder / f"{name}.inv"
        if reachable:
            try:
                request = urllib.request.Request(
                    address + "objects.inv", headers={"User-Agent": "sphinx"}
                )
                with urllib.request.urlopen(request, timeout=timeout) as answer:
                    content = answer.read()
            except (TimeoutError, OSError, HTTPException):
                reachable = False
            else:
                if is_inventory(content):
                    folder.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
        if file.exists():
            found[name] = (address, str(file))
    return found
