"""Turn code that is a public name, such as ``Isomap`` or ``metrics.stress``, into a link."""

from docutils import nodes
from public_names import documented_names
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

# Public names that more often mean something else: a class of the standard library.
NOT_LINKED = {"Path"}


def linked_names():
    """Spellings in the text and the documented names that they mean."""
    links = {}
    for path, documented in documented_names().items():
        parts = path.split(".")
        for start in range(len(parts)):
            links.setdefault(".".join(parts[start:]), documented)
    return {text: path for text, path in links.items() if is_a_name(text)}


def is_a_name(text):
    """Whether a spelling can only mean the object: `Isomap`, `plot_trace`, `metrics.stress`."""
    plain_word = text.islower() and "." not in text and "_" not in text
    return not plain_word and text not in NOT_LINKED


class LinkNames(SphinxTransform):
    """Wrap code that names a public object in a reference to it."""

    default_priority = 400

    def apply(self, **kwargs):
        """Replace the nodes of one page."""
        links = linked_names()
        for node in list(self.document.findall(nodes.literal)):
            target = find_target(node.astext(), links)
            if target and not is_part_of_a_link(node):
                node.replace_self(reference(node, target, self.env.docname))


def find_target(text, links):
    """Return the documented name of an object, or of a member of it."""
    name = text.removesuffix("()")
    if name in links:
        return links[name]
    owner, _, member = name.rpartition(".")
    if owner in links and member.isidentifier():
        return f"{links[owner]}.{member}"
    return None


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
    wrapped = addnodes.pending_xref(
        "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=docname
    )
    return wrapped.__iadd__(node.deepcopy())


def resolve_alias(app, env, node, contnode):
    """Find an object that a docstring names by the module that defines it."""
    target = node.get("reftarget", "")
    documented = documented_names().get(target)
    if node.get("refdomain") != "py" or documented in (None, target):
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", documented, node, contnode)


def setup(app):
    """Register the transform."""
    app.add_transform(LinkNames)
    app.connect("missing-reference", resolve_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
