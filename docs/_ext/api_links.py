"""Turn code that is a public name, such as ``Isomap`` or ``metrics.stress``, into a link."""

import re
from functools import cache

from docutils import nodes
from public_names import documented_names
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

# Public names that more often mean something else: a class of the standard library.
NOT_LINKED = {"Path"}
CALL = re.compile(r"(?P<name>[\w.]+)\([^()]*\)")


@cache
def linked_names():
    """Spellings in the text and the documented names that they mean."""
    links = {}
    for path, documented in documented_names().items():
        parts = path.split(".")
        for start in range(len(parts)):
            links.setdefault(".".join(parts[start:]), documented)
    return links


def is_a_name(text):
    """Whether a spelling can only mean the object: `Isomap`, `plot_trace`, `metrics.stress`."""
    plain_word = text.islower() and "." not in text and "_" not in text
    return not plain_word and text not in NOT_LINKED


def find_target(text):
    """Return the documented name of an object or of its member; `assess(X, map)` is a name too."""
    call = CALL.fullmatch(text)
    name = call["name"] if call else text
    if not call and not is_a_name(name):
        return None
    owner, _, member = name.rpartition(".")
    if name in linked_names():
        return linked_names()[name]
    if is_a_name(owner) and owner in linked_names() and member.isidentifier():
        return f"{linked_names()[owner]}.{member}"
    return None


class LinkNames(SphinxTransform):
    """Wrap code that names a public object in a reference to it."""

    default_priority = 400

    def apply(self, **kwargs):
        """Replace the nodes of one page."""
        for node in list(self.document.findall(nodes.literal)):
            target = find_target(node.astext())
            if target and not is_part_of_a_link(node):
                node.replace_self(reference(node, target, self.env.docname))


def is_part_of_a_link(node):
    """Whether a node belongs to a link, a heading or a signature."""
    outer = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)
    parent = node.parent
    while parent is not None:
        if isinstance(parent, outer):
            return True
        parent = parent.parent
    return False


def reference(node, target, docname):
    """Return a reference that becomes a link if the reference has the name."""
    target_node = {"reftype": "obj", "reftarget": target, "refexplicit": True, "refdoc": docname}
    return addnodes.pending_xref("", node.deepcopy(), refdomain="py", **target_node)


def resolve_alias(app, env, node, contnode):
    """Find an object that is named by another of its paths, or an attribute: by its class."""
    if node.get("refdomain") != "py":
        return None
    domain, builder = env.get_domain("py"), app.builder
    for target in other_targets(node["reftarget"]):
        found = domain.resolve_xref(env, node["refdoc"], builder, "obj", target, node, contnode)
        if found is not None:
            return found
    return None


def other_targets(target):
    """Yield the documented names that a reference can mean, the most precise first."""
    owner, _, member = target.rpartition(".")
    if target in linked_names():
        yield linked_names()[target]
    if owner in linked_names():
        yield f"{linked_names()[owner]}.{member}"
        yield linked_names()[owner]


def setup(app):
    """Register the transform."""
    app.add_transform(LinkNames)
    app.connect("missing-reference", resolve_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
