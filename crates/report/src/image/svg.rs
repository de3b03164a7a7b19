//! A picture as SVG: self-contained, without text elements, so that it needs no font.

use std::collections::BTreeMap;
use std::fmt::Write;

use fathom_core::{markup, printable};
use ttf_parser::GlyphId;

use super::font::{Font, Stroke};
use super::{Element, Picture, Rgb};

/// The picture as a file.
pub fn write(picture: &Picture, font: &Font) -> String {
    let mut glyphs: BTreeMap<u16, GlyphId> = BTreeMap::new();
    let mut body = String::new();
    picture.shapes.iter().for_each(|shape| draw(&mut body, shape, font, &mut glyphs));
    let mut out = String::new();
    let (width, height) = (picture.width, picture.height);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n<defs>\n",
        escape(&picture.title),
        escape(&picture.about)
    );
    for (number, glyph) in &glyphs {
        let _ = writeln!(out, "<path id=\"g{number}\" d=\"{}\"/>", outline(&font.outline(*glyph)));
    }
    let _ = write!(out, "</defs>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n");
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, shape: &Element, font: &Font, glyphs: &mut BTreeMap<u16, GlyphId>) {
    let _ = match shape {
        Element::Line { points, color, width, dash } => {
            let dash = dash.map_or(String::new(), |dash| format!(" stroke-dasharray=\"{dash}\""));
            let color = hex(*color);
            let points = joined(points);
            writeln!(
                out,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" \
                 stroke-width=\"{width}\"{dash}/>"
            )
        }
        Element::Area { points, color } => {
            writeln!(out, "<polygon points=\"{}\" fill=\"{}\"/>", joined(points), hex(*color))
        }
        Element::Circle { center, radius, fill, stroke } => {
            let fill = fill.map_or("none".to_owned(), hex);
            let stroke = stroke.map_or(String::new(), |(color, width)| {
                format!(" stroke=\"{}\" stroke-width=\"{width}\"", hex(color))
            });
            let (x, y) = (number(center.0), number(center.1));
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{fill}\"{stroke}/>")
        }
        Element::Text { at, size, color, upwards, text } => {
            let turn = if *upwards { " rotate(-90)" } else { "" };
            let (x, y) = (number(at.0), number(at.1));
            let _ = write!(
                out,
                "<g fill=\"{}\" transform=\"translate({x} {y}){turn} scale({size} -{size})\" \
                 aria-label=\"{}\">",
                hex(*color),
                escape(text)
            );
            let mut right = 0.0;
            for letter in text.chars() {
                let glyph = font.glyph(letter);
                if !font.outline(glyph).is_empty() {
                    glyphs.insert(glyph.0, glyph);
                    let _ = write!(out, "<use href=\"#g{}\" x=\"{right:.3}\"/>", glyph.0);
                }
                right += font.advance(glyph);
            }
            writeln!(out, "</g>")
        }
    };
}

fn number(value: f32) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn joined(points: &[(f32, f32)]) -> String {
    let each = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    each.collect::<Vec<_>>().join(" ")
}

fn hex([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn outline(strokes: &[Stroke]) -> String {
    let mut out = String::new();
    for stroke in strokes {
        let _ = match *stroke {
            Stroke::Move(x, y) => write!(out, "M{x:.3} {y:.3}"),
            Stroke::Line(x, y) => write!(out, "L{x:.3} {y:.3}"),
            Stroke::Quad(a, b, x, y) => write!(out, "Q{a:.3} {b:.3} {x:.3} {y:.3}"),
            Stroke::Cubic(a, b, c, d, x, y) => {
                write!(out, "C{a:.3} {b:.3} {c:.3} {d:.3} {x:.3} {y:.3}")
            }
            Stroke::Close => write!(out, "Z"),
        };
    }
    out
}

fn escape(text: &str) -> String {
    markup(&printable(text))
}
