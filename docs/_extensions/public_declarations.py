"""The directive ``declarations``: a public ``.pxd`` file with what it forwards to.

The text of the compiled module is shown under the public name: imports of declarations
that are public name these, and of others the names are listed.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PACKAGE = Path(__file__).resolve().parents[2] / "maxent"


def home_of(name):
    """Module of the compiled package to which ``maxent.cython.name`` forwards."""
    text = (PACKAGE / "cython" / f"{name}.pxd").read_text(encoding="utf-8")
    return re.search(r"^from (maxent\S+) cimport \*$", text, re.MULTILINE)[1]


def path_of(name):
    """File of the declarations to which ``maxent.cython.name`` forwards."""
    return PACKAGE.parent / (home_of(name).replace(".", "/") + ".pxd")


def declarations(name):
    """Text of the declarations, without the names of private modules."""
    names = (path.stem for path in (PACKAGE / "cython").glob("*.pxd"))
    public = {home_of(one): one for one in names if one != "__init__"}

    def renamed(match):
        one = public.get(match["module"])
        if one:
            return f"from maxent.cython.{one} cimport {match['what']}\n"
        names = re.findall(r"\w+", match["what"])
        return "".join(["# declared here too:\n", *(f"#     {n}\n" for n in names)])

    cimport = r"^from (?P<module>maxent\S+) cimport (?P<what>\([^)]*\)|[^(\n]+)\n"
    text = path_of(name).read_text(encoding="utf-8")
    return re.sub(cimport, renamed, text, flags=re.MULTILINE)


class Declarations(SphinxDirective):
    """``.. declarations:: smo`` shows ``maxent/cython/smo.pxd``."""

    required_arguments = 1

    def run(self):
        """Return the name of the file and its text."""
        name = self.arguments[0]
        self.env.note_dependency(str(path_of(name)))
        text = declarations(name)
        block = nodes.literal_block(text, text, language="cython")
        path = f"maxent/cython/{name}.pxd"
        return [nodes.paragraph("", "", nodes.literal(path, path)), block]


def setup(app):
    """Register the directive."""
    app.add_directive("declarations", Declarations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
