"""Charts as inline SVG for pages that need nothing else: numbers in, markup out.

Colours, dashes and fonts are those of ``charts.css``, so that one page serves light, dark and
print. A chart is drawn :data:`~crawler.charts.svg.WIDTH` units wide, for a column that is hardly
wider in pixels: text stays legible on a telephone, and pages set charts side by side.
"""
