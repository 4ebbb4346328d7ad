//! Charts as pictures: SVG and PNG.
//!
//! [`Figure::svg`] and [`Figure::png`] draw a [chart](crate::chart). The same chart always gives the same
//! bytes. Labels do not overlap. An SVG refers to no other files; its font is `DejaVu Sans` or the nearest
//! available one.

mod bars;
mod canvas;
mod cell_map;
mod contact_sheet;
mod frame;
mod heat_map;
mod legend;
mod lines;
mod text;

use crate::chart::{Bars, CellMap, HeatMap, Lines};
pub use contact_sheet::contact_sheet;

/// The reason why a figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The PNG file could not be written.
    #[error("the figure could not be written as PNG: {0}")]
    Png(String),
    /// A contact sheet without images.
    #[error("there are no images to lay out: give at least one")]
    NoPictures,
    /// An image of neither one nor three channels.
    #[error("images of {0} channels cannot be drawn: give 1 (gray) or 3 (red, green, blue)")]
    Channels(usize),
    /// A side, the number of columns or the scale is zero.
    #[error(
        "images of {height}×{width} pixels in {columns} columns at scale {scale} cover nothing: \
         every one of these must be at least 1"
    )]
    EmptyGrid {
        /// Height of an image.
        height: usize,
        /// Width of an image.
        width: usize,
        /// Images in a row.
        columns: usize,
        /// Side of an enlarged pixel.
        scale: usize,
    },
    /// The length of an image does not match its shape.
    #[error("image {index} has {found} bytes, but its shape needs {expected}")]
    PictureSize {
        /// Its index, from zero.
        index: usize,
        /// Bytes of its shape.
        expected: usize,
        /// Its bytes.
        found: usize,
    },
    /// The page would be larger than the limit of bytes.
    #[error("the page would be too large (more than {limit} bytes): give fewer images or a smaller scale")]
    TooLarge {
        /// Bytes of the largest page.
        limit: usize,
    },
}

/// A chart that can be drawn.
pub trait Figure {
    /// The chart as a self-contained SVG document.
    fn svg(&self) -> String;
    /// The chart as a PNG file, 1600 pixels wide.
    fn png(&self) -> Result<Vec<u8>, FigureError>;
}

macro_rules! figures {
    ($($kind:ty),*) => {$(
        impl Figure for $kind {
            fn svg(&self) -> String {
                self.draw().into_svg()
            }
            fn png(&self) -> Result<Vec<u8>, FigureError> {
                self.draw().into_png()
            }
        }
    )*};
}
figures!(Lines, Bars, HeatMap, CellMap);

/// A PNG file of pixels of eight bits per channel.
fn png_file(
    width: usize,
    height: usize,
    color: png::ColorType,
    pixels: &[u8],
) -> Result<Vec<u8>, FigureError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let failed = |e: png::EncodingError| FigureError::Png(e.to_string());
    encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels)).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
