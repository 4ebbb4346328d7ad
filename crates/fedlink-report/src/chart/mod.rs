//! Charts as data: series, bars, heat maps and maps of cells, with their axes, legends and looks.
//!
//! A chart holds everything that its picture shows: the range, ticks and unit of each axis, the points of
//! each line, its interruptions and markers, and the look and the place of each entry of the legend.
//! Renderers draw it and make no decisions: [`Figure`](crate::figure::Figure) as SVG and PNG,
//! [`latex`](crate::latex) as pgfplots, and the script of the HTML page. No data cause a panic: values that
//! are not finite are left out.

mod axis;
mod bars;
mod cell_map;
mod heat_map;
mod lines;
mod look;
mod thin;

pub(crate) use axis::drawable;
pub use axis::{Axis, Notation, Quantity, Step, Tick};
pub(crate) use bars::MAX_BARS;
pub use bars::{Bar, Bars, Span};
pub use cell_map::{CellMap, Dot};
pub use heat_map::HeatMap;
pub(crate) use heat_map::shade;
pub use lines::{Curve, Lines, MAX_BANDS, Panel, Series, cdf};
pub(crate) use look::{COLORS, DARK_COLORS, DASHES, MARKERS, Rgb};
pub use look::{Entry, Look};
pub(crate) use thin::{kept_rows, seven_digits};
