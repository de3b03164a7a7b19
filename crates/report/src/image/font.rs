//! The letters: outlines and widths from the font that is built into fathom.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Roboto Regular (Google, Apache License 2.0) with the letters of Latin, Greek and Cyrillic and the
/// signs of charts, without hints and kerning.
const ROBOTO: &[u8] = include_bytes!("roboto-regular-subset.ttf");

/// The font.
pub struct Font {
    face: Face<'static>,
}

/// A part of an outline, in shares of the font's size, upwards.
#[derive(Clone, Copy, Debug)]
pub enum Stroke {
    /// A new outline begins.
    Move(f32, f32),
    /// A straight line.
    Line(f32, f32),
    /// A curve with one control point.
    Quad(f32, f32, f32, f32),
    /// A curve with two control points.
    Cubic(f32, f32, f32, f32, f32, f32),
    /// The outline ends where it began.
    Close,
}

impl Default for Font {
    fn default() -> Self {
        let face =
            Face::parse(ROBOTO, 0).expect("the font is part of the program, and a test reads it");
        Self { face }
    }
}

impl Font {
    /// The glyph of a letter, or of a box for one that the font lacks.
    pub fn glyph(&self, letter: char) -> GlyphId {
        let replacement = || self.face.glyph_index('\u{fffd}');
        self.face.glyph_index(letter).or_else(replacement).unwrap_or(GlyphId(0))
    }

    /// How far the next letter is, in shares of the font's size.
    pub fn advance(&self, glyph: GlyphId) -> f32 {
        let advance = self.face.glyph_hor_advance(glyph).unwrap_or(0);
        f32::from(advance) / self.scale()
    }

    /// How wide a text is at a size.
    pub fn width(&self, text: &str, size: f32) -> f32 {
        text.chars().map(|letter| self.advance(self.glyph(letter))).sum::<f32>() * size
    }

    /// The outline of a glyph; empty for a space.
    pub fn outline(&self, glyph: GlyphId) -> Vec<Stroke> {
        let mut outline = Outline { scale: self.scale(), strokes: Vec::new() };
        // None for a glyph without an outline, such as a space.
        let _ = self.face.outline_glyph(glyph, &mut outline);
        outline.strokes
    }

    fn scale(&self) -> f32 {
        f32::from(self.face.units_per_em())
    }
}

struct Outline {
    scale: f32,
    strokes: Vec<Stroke>,
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Stroke::Move(x / self.scale, y / self.scale));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.strokes.push(Stroke::Line(x / self.scale, y / self.scale));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let s = self.scale;
        self.strokes.push(Stroke::Quad(x1 / s, y1 / s, x / s, y / s));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let s = self.scale;
        self.strokes.push(Stroke::Cubic(x1 / s, y1 / s, x2 / s, y2 / s, x / s, y / s));
    }

    fn close(&mut self) {
        self.strokes.push(Stroke::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_a_width_and_those_that_are_missing_a_box() {
        let font = Font::default();
        assert!(font.width("IOPS by queue-depth, µs ± 95 % ≤", 12.0) > 150.0);
        assert!(font.width("iii", 10.0) < font.width("mmm", 10.0));
        for letter in ('a'..='z').chain('A'..='Z').chain('0'..='9').chain("äßñžЖλ%/()±×–•".chars())
        {
            assert_ne!(font.glyph(letter), GlyphId(0), "{letter}");
            assert!(!font.outline(font.glyph(letter)).is_empty(), "{letter}");
        }
        assert_eq!(font.glyph('漢'), font.glyph('\u{fffd}'));
        assert!(font.outline(font.glyph(' ')).is_empty());
    }
}
