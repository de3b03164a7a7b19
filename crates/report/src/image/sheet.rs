//! The canvas: texts, lines, areas and marks.

use super::font::Font;
use super::{Element, Pixel, Rgb};
use crate::chart::{Paint, Shape};

/// Around everything.
pub const EDGE: f32 = 24.0;

/// Tiles and cells.
pub const PANEL: Rgb = [246, 247, 249];
/// What has no verdict.
pub const NOTE: Rgb = [64, 80, 106];
pub const INK: Rgb = [27, 36, 48];
pub const MUTED: Rgb = [93, 104, 120];
pub const GRID: Rgb = [226, 230, 236];
pub const GRAY: Rgb = [222, 224, 228];
pub const SHADE: Rgb = [222, 241, 234];
pub const WHITE: Rgb = [255, 255, 255];
pub const BLACK: Rgb = [0, 0, 0];

pub const TITLE: f32 = 20.0;
pub const HEADING: f32 = 15.0;
pub const TEXT: f32 = 13.0;
pub const SMALL: f32 = 12.0;

/// The position of a text relative to its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The canvas.
pub struct Sheet<'f> {
    pub font: &'f Font,
    pub shapes: Vec<Element>,
}

/// A rectangle.
#[derive(Clone, Copy)]
pub struct Frame {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

/// A color on white paper.
pub fn rgb(paint: Paint) -> Rgb {
    let (_, hex) = paint.named();
    let part = |from: usize| u8::from_str_radix(&hex[from..from + 2], 16).unwrap_or(0);
    [part(1), part(3), part(5)]
}

impl Sheet<'_> {
    pub fn text(&mut self, at: Pixel, size: f32, color: Rgb, anchor: Anchor, text: &str) {
        let width = self.font.width(text, size);
        let shift = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let at = (at.0 - shift, at.1);
        self.shapes.push(Element::Text { at, size, color, upwards: false, text: text.to_owned() });
    }

    /// Text that runs upwards, around the middle of its place.
    pub fn upwards(&mut self, at: Pixel, size: f32, color: Rgb, text: &str) {
        let at = (at.0, at.1 + self.font.width(text, size) / 2.0);
        self.shapes.push(Element::Text { at, size, color, upwards: true, text: text.to_owned() });
    }

    pub fn line(&mut self, points: &[Pixel], color: Rgb, width: f32, dash: Option<f32>) {
        self.shapes.push(Element::Line { points: points.to_vec(), color, width, dash });
    }

    pub fn area(&mut self, frame: Frame, color: Rgb) {
        let Frame { left, top, right, bottom } = frame;
        let points = Vec::from([(left, top), (right, top), (right, bottom), (left, bottom)]);
        self.shapes.push(Element::Area { points, color });
    }

    /// As much of a text as fits.
    pub fn fitted(&self, text: &str, size: f32, room: f32) -> String {
        if self.font.width(text, size) <= room {
            return text.to_owned();
        }
        let room = room - self.font.width("…", size);
        let mut taken = 0.0;
        let fits = text.chars().take_while(|letter| {
            taken += self.font.width(letter.encode_utf8(&mut [0; 4]), size);
            taken <= room
        });
        format!("{}…", fits.collect::<String>())
    }

    /// A text in lines. A word that is longer than a line is broken.
    pub fn wrapped(&self, text: &str, size: f32, room: f32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let longer = lines.last().map(|last| format!("{last} {word}"));
            match longer.filter(|longer| self.font.width(longer, size) <= room) {
                Some(longer) => *lines.last_mut().expect("it was made longer") = longer,
                None => lines.extend(self.broken(word, size, room)),
            }
        }
        lines
    }

    /// A word in pieces that fit.
    fn broken(&self, word: &str, size: f32, room: f32) -> Vec<String> {
        let mut pieces = Vec::from([String::new()]);
        let mut taken = 0.0;
        for letter in word.chars() {
            let width = self.font.width(letter.encode_utf8(&mut [0; 4]), size);
            if room < taken + width && taken > 0.0 {
                pieces.push(String::new());
                taken = 0.0;
            }
            taken += width;
            pieces.last_mut().expect("there is always a piece").push(letter);
        }
        pieces
    }

    pub fn mark(&mut self, mark: Shape, (x, y): Pixel, color: Rgb) {
        let mut area = |points: Vec<Pixel>| self.shapes.push(Element::Area { points, color });
        match mark {
            Shape::Square => {
                area(Vec::from([
                    (x - 4.0, y - 4.0),
                    (x + 4.0, y - 4.0),
                    (x + 4.0, y + 4.0),
                    (x - 4.0, y + 4.0),
                ]));
            }
            Shape::Diamond => {
                area(Vec::from([(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y)]));
            }
            Shape::Triangle => {
                area(Vec::from([(x, y - 5.5), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)]));
            }
            Shape::Circle | Shape::Point => {
                let radius = if mark == Shape::Circle { 4.2 } else { 2.2 };
                let center = (x, y);
                self.shapes.push(Element::Circle {
                    center,
                    radius,
                    fill: Some(color),
                    stroke: None,
                });
            }
            Shape::Ring => {
                let stroke = Some((color, 2.4));
                self.shapes.push(Element::Circle {
                    center: (x, y),
                    radius: 9.5,
                    fill: None,
                    stroke,
                });
            }
            Shape::Cross => {
                self.line(&[(x - 5.0, y - 5.0), (x + 5.0, y + 5.0)], color, 2.6, None);
                self.line(&[(x - 5.0, y + 5.0), (x + 5.0, y - 5.0)], color, 2.6, None);
            }
        }
    }

    /// A dot on any color: white, lined with black.
    pub fn lined(&mut self, mark: Shape, (x, y): Pixel) {
        match mark {
            Shape::Triangle => {
                let points = Vec::from([(x, y - 5.0), (x + 4.8, y + 3.6), (x - 4.8, y + 3.6)]);
                let mut border = points.clone();
                border.push(points[0]);
                border.push(points[1]);
                self.shapes.push(Element::Area { points, color: WHITE });
                self.line(&border, BLACK, 1.0, None);
            }
            _ => self.shapes.push(Element::Circle {
                center: (x, y),
                radius: 2.7,
                fill: Some(WHITE),
                stroke: Some((BLACK, 1.0)),
            }),
        }
    }

    /// Lines from the lower left to the upper right.
    pub fn hatch(&mut self, frame: Frame) {
        let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
        let mut offset = 5.0;
        while offset < width + height {
            let from = match offset <= height {
                true => (frame.left, frame.top + offset),
                false => (frame.left + offset - height, frame.bottom),
            };
            let to = match offset <= width {
                true => (frame.left + offset, frame.top),
                false => (frame.right, frame.top + offset - width),
            };
            self.line(&[from, to], MUTED, 1.0, None);
            offset += 6.0;
        }
    }
}
