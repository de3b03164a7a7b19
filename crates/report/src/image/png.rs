//! A picture as PNG.

use tiny_skia::{
    Color, FillRule, Paint, Path, PathBuilder, Pixmap, Stroke as Pen, StrokeDash, Transform,
};

use super::font::{Font, Stroke};
use super::{Element, Picture, Rgb};

/// Pixels for each one of the picture: for screens of high resolution and for print.
const SCALE: f32 = 2.0;

/// The picture as a file.
///
/// # Errors
///
/// When there is no memory for it.
pub fn write(picture: &Picture, font: &Font) -> Result<Vec<u8>, String> {
    let (width, height) = (picture.width * SCALE, picture.height * SCALE);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| format!("an image of {width} x {height} pixels is too large"))?;
    pixels.fill(Color::WHITE);
    let scale = Transform::from_scale(SCALE, SCALE);
    picture.shapes.iter().for_each(|shape| draw(&mut pixels, shape, font, scale));
    pixels.encode_png().map_err(|error| format!("the PNG cannot be written: {error}"))
}

fn paint([red, green, blue]: Rgb) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn path(points: &[(f32, f32)], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (nth, (x, y)) in points.iter().enumerate() {
        match nth {
            0 => builder.move_to(*x, *y),
            _ => builder.line_to(*x, *y),
        }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn draw(pixels: &mut Pixmap, shape: &Element, font: &Font, scale: Transform) {
    match shape {
        Element::Line { points, color, width, dash } => {
            let dash = dash.and_then(|dash| StrokeDash::new(Vec::from([dash, dash]), 0.0));
            let pen = Pen { width: *width, dash, ..Pen::default() };
            if let Some(path) = path(points, false) {
                pixels.stroke_path(&path, &paint(*color), &pen, scale, None);
            }
        }
        Element::Area { points, color } => {
            if let Some(path) = path(points, true) {
                pixels.fill_path(&path, &paint(*color), FillRule::Winding, scale, None);
            }
        }
        Element::Circle { center, radius, fill, stroke } => {
            let Some(path) = PathBuilder::from_circle(center.0, center.1, *radius) else { return };
            if let Some(fill) = fill {
                pixels.fill_path(&path, &paint(*fill), FillRule::Winding, scale, None);
            }
            if let Some((color, width)) = stroke {
                let pen = Pen { width: *width, ..Pen::default() };
                pixels.stroke_path(&path, &paint(*color), &pen, scale, None);
            }
        }
        Element::Text { at, size, color, upwards, text } => {
            let Some(path) = letters(text, font) else { return };
            let turn = if *upwards { -90.0 } else { 0.0 };
            let place = scale
                .pre_translate(at.0, at.1)
                .pre_concat(Transform::from_rotate(turn))
                .pre_scale(*size, -*size);
            pixels.fill_path(&path, &paint(*color), FillRule::Winding, place, None);
        }
    }
}

/// The outlines of a text, at the size 1.
fn letters(text: &str, font: &Font) -> Option<Path> {
    let mut builder = PathBuilder::new();
    let mut right = 0.0;
    for letter in text.chars() {
        let glyph = font.glyph(letter);
        for stroke in font.outline(glyph) {
            match stroke {
                Stroke::Move(x, y) => builder.move_to(right + x, y),
                Stroke::Line(x, y) => builder.line_to(right + x, y),
                Stroke::Quad(a, b, x, y) => builder.quad_to(right + a, b, right + x, y),
                Stroke::Cubic(a, b, c, d, x, y) => {
                    builder.cubic_to(right + a, b, right + c, d, right + x, y);
                }
                Stroke::Close => builder.close(),
            }
        }
        right += font.advance(glyph);
    }
    builder.finish()
}
