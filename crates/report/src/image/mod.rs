//! Results as images: SVG, and PNG from the same shapes.
//!
//! Letters are drawn as outlines of a font that is built into fathom, so an image looks the same in
//! every program and needs no font of the machine. The code here knows nothing of measurements: it
//! draws charts below an answer.

mod draw;
mod font;
mod heading;
mod numbers;
mod png;
mod sheet;
mod svg;

use crate::page::Illustration;
use font::Font;

/// A point in pixels, from the upper left corner.
type Pixel = (f32, f32);

/// A color.
type Rgb = [u8; 3];

/// The shapes, the last on top.
#[derive(Clone, Debug)]
enum Element {
    /// A line through points.
    Line {
        /// Its points.
        points: Vec<Pixel>,
        /// Its color.
        color: Rgb,
        /// Its width.
        width: f32,
        /// The length of its dashes and of the gaps; solid if there is none.
        dash: Option<f32>,
    },
    /// An area.
    Area {
        /// Its corners.
        points: Vec<Pixel>,
        /// Its color.
        color: Rgb,
    },
    /// A circle.
    Circle {
        /// Its center.
        center: Pixel,
        /// Its radius.
        radius: f32,
        /// Its fill color.
        fill: Option<Rgb>,
        /// The color and the width of its outline.
        stroke: Option<(Rgb, f32)>,
    },
    /// Text.
    Text {
        /// The beginning of its baseline.
        at: Pixel,
        /// The size of the font.
        size: f32,
        /// Its color.
        color: Rgb,
        /// Whether it runs upwards.
        upwards: bool,
        /// The text.
        text: String,
    },
}

/// A finished picture.
#[derive(Clone, Debug)]
struct Picture {
    width: f32,
    height: f32,
    title: String,
    about: String,
    shapes: Vec<Element>,
}

/// An illustration as SVG.
pub fn svg(illustration: &Illustration) -> String {
    let font = Font::default();
    svg::write(&draw::picture(illustration, &font), &font)
}

/// An illustration as PNG, with two pixels for each one of the SVG.
///
/// # Errors
///
/// When there is no memory for it.
pub fn png(illustration: &Illustration) -> Result<Vec<u8>, String> {
    let font = Font::default();
    png::write(&draw::picture(illustration, &font), &font)
}
