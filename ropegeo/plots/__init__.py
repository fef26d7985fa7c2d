"""Pictures of a built head, of its margin curve and of fits to one: values drawn on axes, nothing computed.

Figures are made without pyplot, so there is no global figure, no display, and no state between calls; matplotlib's
settings are read under a lock, and a user's own matplotlibrc does not change the pictures. Colours are those of Okabe
and Ito, which stay apart for colour-blind readers, and every role also has its own marker or line style. Texts that
come from outside are drawn as they are: no mathtext, no line breaks of their own.
"""

from ropegeo.plots.canvas import figure_bytes
from ropegeo.plots.curve import curve_figure
from ropegeo.plots.fit import fit_figure
from ropegeo.plots.head import head_figure

__all__ = ["curve_figure", "figure_bytes", "fit_figure", "head_figure"]
