"""MathML as TeX, for pages that do not say their TeX themselves."""

from typing import Final

from freshet.crawler.reduce.tree import Tree

#: Elements with a base, which is their first child.
_SCRIPTED: Final = {
    **dict.fromkeys(("msup", "mover"), "{}^{}"),
    **dict.fromkeys(("msub", "munder"), "{}_{}"),
    **dict.fromkeys(("msubsup", "munderover"), "{}_{}^{}"),
}
_FORMS: Final = _SCRIPTED | {
    "mfrac": r"\frac{{{}}}{{{}}}",
    "msqrt": r"\sqrt{{{}}}",
    "mtext": r"\text{{{}}}",
}
_TABLE_JOINTS: Final = {"mtable": r" \\ ", "mtr": " & "}


def tex_of(tree: Tree, node: int) -> str:
    """Return MathML as TeX: its scripts, fractions, roots and tables."""
    if not tree.name[node]:
        return " ".join(tree.text_of(node).split())
    tag, parts = tree.tag(node), [tex_of(tree, child) for child in tree.children(node)]
    parts = [part for part in parts if part]
    if tag in _TABLE_JOINTS:
        return _TABLE_JOINTS[tag].join(parts)
    form = _FORMS.get(tag)
    if form is None or len(parts) != form.count("{}"):
        return "".join(parts)
    if tag in _SCRIPTED:
        # Braces are left out around a single character.
        parts[1:] = [part if len(part) == 1 else f"{{{part}}}" for part in parts[1:]]
    return form.format(*parts)
