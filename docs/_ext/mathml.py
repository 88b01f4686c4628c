"""Render mathematics as MathML, which browsers display without scripts, fonts or the network."""

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Write a formula of its own lines."""
    formula = convert(node.astext().strip(), display="block")
    translator.body.append(f'<div class="math-block">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
