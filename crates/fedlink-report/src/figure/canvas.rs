//! The drawing surface, the only file that uses the plotting crate.
//!
//! Figures consist of lines, polygons, rectangles and texts at pixel positions. This file passes them to
//! `kuva`, which writes them as SVG or renders them as PNG.
//!
//! Every coordinate is rounded to a quarter of a pixel. Finer steps are invisible, and quarters are exact
//! in binary and so print with at most two decimals: a figure stays small and the same on every machine.

use std::fmt::Write;

use kuva::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor, TextSpan};

use super::{FigureError, text};
use crate::chart::Rgb;

/// A position in pixels, from the top left corner rightwards and downwards.
pub type Pixel = (f64, f64);

/// Text and axis lines.
pub const INK: Rgb = (0x22, 0x22, 0x22);
/// Secondary text.
pub const MUTED: Rgb = (0x55, 0x55, 0x55);
/// Grid lines.
pub const GRID: Rgb = (0xe2, 0xe2, 0xe2);
/// Cells without a value.
pub const ABSENT: Rgb = (0xd0, 0xd0, 0xd0);
/// The background.
pub const WHITE: Rgb = (0xff, 0xff, 0xff);

/// PNG pixels per figure pixel: 800 figure pixels across a 13 cm column print at 312 dots per inch.
const PNG_SCALE: f32 = 2.0;

/// The point of a text at its given position.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// The style of a text.
#[derive(Clone, Copy)]
pub struct Style {
    /// Font size in pixels.
    pub size: u32,
    /// The point of the text at its position.
    pub anchor: Anchor,
    /// Fill of the letters.
    pub color: Rgb,
    /// Whether it runs upwards and not to the right.
    pub upwards: bool,
}

impl Style {
    /// Level text in the color of the axes.
    pub const fn new(size: u32, anchor: Anchor) -> Self {
        Self { size, anchor, color: INK, upwards: false }
    }
}

/// An image being composed.
pub struct Canvas {
    scene: Scene,
    /// Vertical texts, kept separately for the PNG.
    upwards: Vec<Upwards>,
}

struct Upwards {
    at: Pixel,
    content: String,
    style: Style,
}

impl Canvas {
    /// A white page.
    pub fn new(width: f64, height: f64) -> Self {
        let mut scene = Scene::new(width, height).with_background(Some("#ffffff"));
        scene.font_family = Some("DejaVu Sans, Verdana, Liberation Sans, Arial, sans-serif".into());
        Self { scene, upwards: Vec::new() }
    }

    /// A polyline; `dash` alternates the lengths of dashes and gaps, empty for a solid line.
    pub fn polyline(&mut self, points: &[Pixel], color: Rgb, width: f64, dash: &[f64]) {
        let points = snapped(points);
        if points.len() < 2 {
            return;
        }
        let pattern: Vec<String> = dash.iter().map(f64::to_string).collect();
        self.scene.add(Primitive::PolyLine {
            points,
            stroke: paint(color),
            stroke_width: width,
            stroke_dasharray: (!dash.is_empty()).then(|| pattern.join(" ")),
        });
    }

    /// A filled polygon, with an outline if `outline` is given a width and color.
    pub fn polygon(&mut self, corners: &[Pixel], fill: Rgb, opacity: f64, outline: Option<(f64, Rgb)>) {
        let corners = snapped(corners);
        if corners.len() < 3 {
            return;
        }
        let mut d = String::with_capacity(corners.len() * 14);
        for (i, (x, y)) in corners.iter().enumerate() {
            let _ = write!(d, "{}{x} {y}", if i == 0 { "M" } else { "L" });
        }
        d.push('Z');
        let (stroke_width, stroke) = outline.map_or((0.0, Color::None), |(w, c)| (w, paint(c)));
        self.scene.add(Primitive::Path(Box::new(PathData {
            d,
            fill: Some(paint(fill)),
            stroke,
            stroke_width,
            opacity: (opacity < 1.0).then_some(opacity),
            stroke_dasharray: None,
        })));
    }

    /// A disc with a thin outline.
    pub fn disc(&mut self, (x, y): Pixel, r: f64, fill: Rgb, outline: Rgb) {
        self.scene.add(Primitive::Circle {
            cx: snap(x),
            cy: snap(y),
            r: snap(r),
            fill: paint(fill),
            fill_opacity: None,
            stroke: Some(paint(outline)),
            stroke_width: Some(0.75),
        });
    }

    /// A filled rectangle from its top left to its bottom right corner.
    pub fn rect(&mut self, (x0, y0): Pixel, (x1, y1): Pixel, fill: Rgb) {
        let (x, y) = (snap(x0), snap(y0));
        self.scene.add(Primitive::Rect {
            x,
            y,
            width: snap(x1) - x,
            height: snap(y1) - y,
            fill: paint(fill),
            stroke: None,
            stroke_width: None,
            opacity: None,
        });
    }

    /// A thin horizontal or vertical line from `a` to `b`, moved by less than a pixel so that it is
    /// sharp.
    pub fn rule(&mut self, a: Pixel, b: Pixel, color: Rgb) {
        let sharp = |(x, y): Pixel| (x.floor() + 0.5, y.floor() + 0.5);
        self.polyline(&[sharp(a), sharp(b)], color, 1.0, &[]);
    }

    /// A line of text whose baseline passes through the position.
    pub fn text(&mut self, at: Pixel, content: &str, style: Style) {
        let content = text::printable(content);
        if style.upwards {
            self.upwards.push(Upwards { at, content, style });
        } else {
            self.scene.add(text_at(at, &content, style));
        }
    }

    /// A line of bold, level text.
    pub fn bold(&mut self, (x, y): Pixel, content: &str, style: Style) {
        // The PNG writer supports bold text in spans only.
        let span = TextSpan { bold: true, ..TextSpan::plain(text::printable(content)) };
        self.scene.add(Primitive::RichText {
            x: snap(x),
            y: snap(y),
            spans: vec![span],
            size: style.size,
            anchor: anchor(style.anchor),
            color: Some(paint(style.color)),
        });
    }

    /// The image as a self-contained SVG document that scales with its page.
    pub fn into_svg(mut self) -> String {
        for label in self.upwards {
            self.scene.add(text_at(label.at, &label.content, label.style));
        }
        let size = format!("<svg viewBox=\"0 0 {} {}\" ", self.scene.width, self.scene.height);
        SvgBackend::new().render_scene(&self.scene).replacen("<svg ", &size, 1)
    }

    /// The image as a PNG file at twice its nominal size.
    pub fn into_png(mut self) -> Result<Vec<u8>, FigureError> {
        // The PNG writer restarts a dash pattern at every corner of a line, and does not scale it.
        self.scene.elements = self.scene.elements.into_iter().flat_map(without_dashes).collect();
        let mut page = Bitmap::paint(&self.scene)?;
        for label in &self.upwards {
            page.print_upwards(label)?;
        }
        super::png_file(page.width, page.height, png::ColorType::Rgb, &page.pixels)
    }
}

/// A rendered scene: three bytes per pixel.
struct Bitmap {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Bitmap {
    fn paint(scene: &Scene) -> Result<Self, FigureError> {
        let file =
            RasterBackend::new().with_scale(PNG_SCALE).render_scene(scene).map_err(FigureError::Png)?;
        let failed = |e: png::DecodingError| FigureError::Png(e.to_string());
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().map_err(failed)?;
        let mut rgba = vec![0; reader.output_buffer_size().unwrap_or(0)];
        let info = reader.next_frame(&mut rgba).map_err(failed)?;
        let pixels = rgba.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
        Ok(Self { width: info.width as usize, height: info.height as usize, pixels })
    }

    /// Prints a vertical text. The PNG writer itself draws rotated text without smooth edges, so the text
    /// is drawn horizontally on a bitmap of its own, which is then rotated.
    fn print_upwards(&mut self, label: &Upwards) -> Result<(), FigureError> {
        let size = f64::from(label.style.size);
        let width = (text::width(&label.content, label.style.size, false) + 2.0 * size).ceil();
        let anchor = match label.style.anchor {
            Anchor::Start => size,
            Anchor::Middle => width / 2.0,
            Anchor::End => width - size,
        };
        let mut slip = Scene::new(width, 2.0 * size);
        let level = Style { upwards: false, ..label.style };
        slip.add(text_at((anchor, 1.5 * size), &label.content, level));
        let slip = Self::paint(&slip)?;

        let scaled = |v: f64| (v * f64::from(PNG_SCALE)).round() as isize;
        let left = scaled(label.at.0) - scaled(1.5 * size);
        let bottom = scaled(label.at.1) + scaled(anchor);
        for (i, ink) in slip.pixels.chunks_exact(3).enumerate() {
            let x = usize::try_from(left + (i / slip.width) as isize);
            let y = usize::try_from(bottom - 1 - (i % slip.width) as isize);
            if let (Ok(x), Ok(y)) = (x, y)
                && x < self.width
                && y < self.height
            {
                let paper = &mut self.pixels[3 * (y * self.width + x)..][..3];
                for (paper, ink) in paper.iter_mut().zip(ink) {
                    *paper = (u16::from(*paper) * u16::from(*ink) / 255) as u8;
                }
            }
        }
        Ok(())
    }
}

fn text_at((x, y): Pixel, content: &str, style: Style) -> Primitive {
    Primitive::Text {
        x: snap(x),
        y: snap(y),
        // A label is text: two dollar signs in it must not start a formula.
        content: content.replace('$', "\\$"),
        size: style.size,
        anchor: anchor(style.anchor),
        rotate: style.upwards.then_some(-90.0),
        bold: false,
        color: Some(paint(style.color)),
    }
}

fn paint((r, g, b): Rgb) -> Color {
    Color::Rgb(r, g, b)
}

fn anchor(anchor: Anchor) -> TextAnchor {
    match anchor {
        Anchor::Start => TextAnchor::Start,
        Anchor::Middle => TextAnchor::Middle,
        Anchor::End => TextAnchor::End,
    }
}

fn snap(v: f64) -> f64 {
    // Adding zero turns a negative zero into a plain one.
    (v * 4.0).round() / 4.0 + 0.0
}

fn snapped(points: &[Pixel]) -> Vec<Pixel> {
    let mut points: Vec<Pixel> = points.iter().map(|&(x, y)| (snap(x), snap(y))).collect();
    points.dedup();
    points
}

/// A dashed polyline as the polylines of its dashes; anything else unchanged.
fn without_dashes(element: Primitive) -> Vec<Primitive> {
    match element {
        Primitive::PolyLine { points, stroke, stroke_width, stroke_dasharray: Some(pattern) } => {
            // The lines have round ends, which lengthen a dash by the line width and shorten a gap.
            let mut ends = [-stroke_width, stroke_width].into_iter().cycle();
            let lengths = pattern.split(' ').filter_map(|l| l.parse::<f64>().ok());
            let pattern: Vec<f64> = lengths.map(|l| l + ends.next().unwrap_or(0.0)).collect();
            cut(&points, &pattern)
                .into_iter()
                .map(|points| Primitive::PolyLine {
                    points,
                    stroke: stroke.clone(),
                    stroke_width,
                    stroke_dasharray: None,
                })
                .collect()
        }
        other => vec![other],
    }
}

/// Cuts a polyline into dashes: `pattern` alternates the lengths of dashes and gaps.
fn cut(points: &[Pixel], pattern: &[f64]) -> Vec<Vec<Pixel>> {
    let mut dashes = Vec::new();
    let mut turn = 0;
    let mut left = pattern[0];
    let mut dash = vec![points[0]];
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = ((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)).sqrt();
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let at = (x0 + (x1 - x0) * done / length, y0 + (y1 - y0) * done / length);
            if turn % 2 == 0 {
                dash.push(at);
                dashes.push(std::mem::take(&mut dash));
            } else {
                dash = vec![at];
            }
            turn += 1;
            left = pattern[turn % pattern.len()];
        }
        left -= length - done;
        if turn % 2 == 0 {
            dash.push((x1, y1));
        }
    }
    if dash.len() > 1 {
        dashes.push(dash);
    }
    dashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_continue_around_corners() {
        // A right angle of 6 + 6 pixels, dashes of 4 and gaps of 2: the second dash begins at the corner.
        let dashes = cut(&[(0.0, 0.0), (6.0, 0.0), (6.0, 6.0)], &[4.0, 2.0]);
        assert_eq!(dashes, [vec![(0.0, 0.0), (4.0, 0.0)], vec![(6.0, 0.0), (6.0, 4.0)]]);
        // Dashes of 5 and gaps of 1 on 3 + 3 + 3 pixels: the first dash bends twice, the second is the
        // rest.
        let dashes = cut(&[(0.0, 0.0), (3.0, 0.0), (3.0, 3.0), (6.0, 3.0)], &[5.0, 1.0]);
        let bent = vec![(0.0, 0.0), (3.0, 0.0), (3.0, 2.0)];
        assert_eq!(dashes, [bent, vec![(3.0, 3.0), (6.0, 3.0)]]);
    }

    #[test]
    fn coordinates_print_with_two_decimals_at_most() {
        let mut canvas = Canvas::new(100.0, 50.0);
        canvas.polyline(&[(0.1, 1.0 / 3.0), (33.333, 12.345_678)], INK, 1.5, &[]);
        canvas.polygon(&[(0.1, 0.3), (33.333, 12.345_678), (7.77, 9.99)], INK, 0.25, None);
        let svg = canvas.into_svg();
        assert!(svg.contains("M 0 0.25 L 33.25 12.25"), "{svg}");
        assert!(svg.contains("M0 0.25L33.25 12.25L7.75 10Z"), "{svg}");
    }

    #[test]
    fn the_width_of_a_text_is_the_width_it_is_drawn_with() {
        // In black on white, the first and last dark columns are those of the two vertical strokes.
        for content in ["|accuracy 0123456789 BC-BN2|", "|The Quick (brown) Fox; 93.1 % & <jumps>|"] {
            let mut canvas = Canvas::new(500.0, 40.0);
            canvas.text((10.0, 25.0), content, Style::new(16, Anchor::Start));
            let png = canvas.into_png().unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            let dark = |x: usize| (0..info.height as usize).any(|y| pixels[y * info.line_size + 3 * x] < 128);
            let columns: Vec<usize> = (0..info.width as usize).filter(|&x| dark(x)).collect();
            let drawn = (columns[columns.len() - 1] - columns[0]) as f64 / f64::from(PNG_SCALE);
            // The distance of the strokes is the width without one stroke's advance.
            let expected = text::width(content, 16, false) - text::width("|", 16, false);
            assert!((drawn - expected).abs() < 2.0, "{content}: drawn {drawn}, expected {expected}");
        }
    }

    #[test]
    fn a_vertical_text_is_the_horizontal_one_rotated() {
        let painted = |width: f64, height: f64, at: Pixel, upwards: bool| {
            let mut canvas = Canvas::new(width, height);
            canvas.text(at, "Accuracy (%)", Style { upwards, ..Style::new(14, Anchor::Middle) });
            let file = canvas.into_png().unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            pixels
        };
        let level = painted(200.0, 30.0, (100.0, 20.0), false);
        let turned = painted(30.0, 200.0, (20.0, 100.0), true);
        assert!(level.iter().any(|&p| p < 64), "nothing was drawn");
        let at = |x: usize, y: usize, width: usize| 3 * (y * width + x);
        for x in 0..400 {
            for y in 0..60 {
                assert_eq!(level[at(x, y, 400)], turned[at(y, 399 - x, 60)], "at {x}, {y}");
            }
        }
    }
}
