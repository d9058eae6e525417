"""Heads of pages for search engines and messengers: description, Open Graph tags.

Addresses in them, and the canonical one, need `html_baseurl`.
"""

from __future__ import annotations

import html
import posixpath
import re

from docutils import nodes

PICTURE = "_static/overview.png"
LONGEST = 200  # characters of a description


def description(doctree):
    """First paragraph of a page's own text, in one line."""
    if doctree is None:
        return ""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = " ".join(paragraph.astext().split())
            if len(text) > LONGEST:
                text = text[:LONGEST].rpartition(" ")[0] + " …"
            return text
    return ""


def add_tags(app, pagename, templatename, context, doctree):
    """Add the tags to the head of a page."""
    title = re.sub("<[^>]+>", "", context.get("title") or app.config.project)
    tags = {
        "og:type": "website",
        "og:site_name": app.config.project,
        "og:title": html.unescape(title),
        "og:description": description(doctree),
    }
    base = app.config.html_baseurl
    if base:
        tags["og:url"] = context.get("pageurl")
        tags["og:image"] = posixpath.join(base, PICTURE)
    lines = [
        f'<meta property="{name}" content="{html.escape(value)}" />'
        for name, value in tags.items()
        if value
    ]
    if tags["og:description"]:
        own = html.escape(tags["og:description"])
        lines.append(f'<meta name="description" content="{own}" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def setup(app):
    """Connect to the pages."""
    app.connect("html-page-context", add_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
