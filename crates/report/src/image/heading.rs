//! The head of every image: the answer in the color of its verdict, where it is from, and the
//! figures that matter.

use super::Rgb;
use super::numbers::{self, BAD, DOUBTFUL, GOOD};
use super::sheet::{Anchor, EDGE, Frame, INK, MUTED, NOTE, Sheet, TEXT, TITLE};
use crate::page::{Illustration, Tone};

/// Left of the answer, for the bar in the color of the verdict.
const INDENT: f32 = 16.0;

/// Draws it; returns where it ends.
pub fn draw(sheet: &mut Sheet<'_>, illustration: &Illustration, room: f32) -> f32 {
    let answer = &illustration.answer;
    let mut y = EDGE;
    for line in sheet.wrapped(&answer.text, TITLE, room - INDENT) {
        y += TITLE + 6.0;
        sheet.text((EDGE + INDENT, y - 6.0), TITLE, INK, Anchor::Start, &line);
    }
    let bar = Frame { left: EDGE, top: EDGE - 2.0, right: EDGE + 5.0, bottom: y };
    sheet.area(bar, color(answer.tone));
    y += 4.0;
    for line in sheet.wrapped(&illustration.source, TEXT, room) {
        y += TEXT + 5.0;
        sheet.text((EDGE, y), TEXT, MUTED, Anchor::Start, &line);
    }
    y += 12.0;
    match &illustration.figures {
        Some(figures) => numbers::tiles(sheet, figures, y, room),
        None => y,
    }
}

fn color(tone: Tone) -> Rgb {
    match tone {
        Tone::Good => GOOD,
        Tone::Doubtful => DOUBTFUL,
        Tone::Bad => BAD,
        Tone::Plain | Tone::Strong | Tone::Quiet => NOTE,
    }
}
