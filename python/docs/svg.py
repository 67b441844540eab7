"""Draws SVG from boxes, texts and arrows. Colors are classes of static/penstock.css, which follow the theme."""

import html

MARKER = (
    '<defs><marker id="{id}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" class="head"/></marker></defs>'
)


class Drawing:
    """A picture of a given size. `id` is unique on a page; `title` says what it shows, for screen readers."""

    def __init__(self, id, title, width, height):
        self.id, self.title, self.width, self.height, self.parts = id, title, width, height, []

    def box(self, x, y, width, height, kind, text="", small=False):
        """A rectangle of a kind (a class), with a text in its middle."""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" class="{kind}"/>')
        if text:
            self.text(x + width / 2, y + height / 2 + 4, text, "middle", small)

    def text(self, x, y, text, anchor="start", small=False, kind=""):
        classes = " ".join(filter(None, ["small" if small else "", kind]))
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{classes}">{html.escape(text)}</text>'
        )

    def arrow(self, x1, y1, x2, y2, kind="line", bend=None):
        """An arrow; with `bend`, a curve that leaves and arrives horizontally."""
        if bend is None:
            path = f"M{x1:g},{y1:g} L{x2:g},{y2:g}"
        else:
            path = f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"
        self.parts.append(f'<path d="{path}" class="{kind}" marker-end="url(#{self.id}-head)"/>')

    def line(self, x1, y1, x2, y2, kind="rule"):
        self.parts.append(f'<path d="M{x1:g},{y1:g} L{x2:g},{y2:g}" class="{kind}"/>')

    def markup(self):
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" role="img" aria-label="{html.escape(self.title)}">'
            f"{MARKER.format(id=self.id)}{''.join(self.parts)}</svg>"
        )
