//! An XML file as a tree with the places of all elements, within limits: content that is larger or
//! deeper than a profile can be is refused before it is held in memory.

use fathom_core::Refusal;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

/// Bytes of the largest file: some thousand targets.
pub const LARGEST: usize = 4 << 20;
/// A profile is eight elements deep.
const DEEPEST: usize = 32;

/// An element.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    /// `file:line:column` of its tag.
    pub place: String,
    pub attributes: Vec<(String, String)>,
    /// Its text without the space around it.
    pub text: String,
    pub children: Vec<Element>,
    /// The places in the text with characters that were written as numbers: those are never
    /// trimmed.
    referenced: Option<(usize, usize)>,
}

/// Reads a file; `name` is its name in places.
///
/// # Errors
///
/// When it is not XML, or not in Unicode; with the place.
pub fn read(name: &str, bytes: &[u8]) -> Result<Element, Refusal> {
    let remedy = "compare it with what fathom diskspd -Rpxml prints";
    if bytes.len() > LARGEST {
        let problem =
            format!("it has {} bytes, and no profile has more than {LARGEST}", bytes.len());
        return Err(Refusal::usage(name, problem, "name an XML profile of DiskSpd's"));
    }
    let text = decoded(bytes).ok_or_else(|| {
        Refusal::usage(name, "it is neither UTF-8 nor UTF-16", "save it as UTF-8")
    })?;
    let mut places = Places::new(name, &text);
    let mut reader = Reader::from_str(&text);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let place = places.at(reader.buffer_position());
        let event = reader.read_event().map_err(|error| {
            let place = places.at(reader.error_position());
            Refusal::usage(place, format!("it is no XML: {error}"), remedy)
        })?;
        let refuse = |problem: String| Refusal::usage(&place, problem, remedy);
        match event {
            Event::Start(tag) | Event::Empty(tag) if root.is_some() && open.is_empty() => {
                return Err(refuse(format!("<{}> follows the end of the profile", tag.name().0)));
            }
            Event::Start(_) if open.len() == DEEPEST => {
                return Err(refuse(format!("elements are more than {DEEPEST} deep")));
            }
            Event::Start(tag) => open.push(element(&tag, place.clone()).map_err(refuse)?),
            Event::Empty(tag) => {
                let element = element(&tag, place.clone()).map_err(refuse)?;
                close(element, &mut open, &mut root);
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(|| refuse("nothing is open".to_owned()))?;
                close(element, &mut open, &mut root);
            }
            Event::Text(text) => {
                add(&text.xml_content(XmlVersion::Implicit1_0), &mut open).map_err(refuse)?;
            }
            Event::CData(text) => {
                add(&text.xml_content(XmlVersion::Implicit1_0), &mut open).map_err(refuse)?;
            }
            Event::GeneralRef(reference) => {
                let text = resolved(&reference).map_err(refuse)?;
                add_referenced(&text, &mut open).map_err(refuse)?;
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    match (open.pop(), root) {
        (Some(element), _) => Err(Refusal::usage(
            element.place,
            format!("<{}> is never closed", element.name),
            remedy,
        )),
        (None, None) => Err(Refusal::usage(name, "it has no element", remedy)),
        (None, Some(root)) => Ok(root),
    }
}

/// The text of a file in UTF-8, or in UTF-16 as PowerShell writes it.
fn decoded(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| bytes.len().is_multiple_of(2))
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// The places of bytes in a file. Because places come in order, every byte is counted once.
struct Places<'a> {
    name: &'a str,
    text: &'a str,
    /// The end of the counted part, and its place.
    counted: usize,
    line: usize,
    column: usize,
}

impl<'a> Places<'a> {
    fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, counted: 0, line: 1, column: 1 }
    }

    fn at(&mut self, position: u64) -> String {
        let end = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        if end < self.counted {
            *self = Self::new(self.name, self.text);
        }
        for byte in &self.text.as_bytes()[self.counted..end] {
            match byte {
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                // A character of several bytes is one.
                byte if byte & 0xc0 == 0x80 => {}
                _ => self.column += 1,
            }
        }
        self.counted = end;
        format!("{}:{}:{}", self.name, self.line, self.column)
    }
}

fn element(tag: &BytesStart<'_>, place: String) -> Result<Element, String> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| format!("an attribute is no XML: {error}"))?;
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|error| format!("an attribute is no XML: {error}"))?;
        attributes.push((attribute.key.0.to_owned(), value.into_owned()));
    }
    let name = tag.name().local_name().into_inner().to_owned();
    Ok(Element { name, place, attributes, ..Element::default() })
}

fn close(mut element: Element, open: &mut [Element], root: &mut Option<Element>) {
    let (first, end) = element.referenced.unwrap_or((element.text.len(), 0));
    let text = &element.text;
    let space = [' ', '\t', '\n', '\r'];
    let tail = text.trim_end_matches(space).len().max(end);
    let lead = (text.len() - text.trim_start_matches(space).len()).min(first).min(tail);
    element.text = text[lead..tail].to_owned();
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

fn add(text: &str, open: &mut [Element]) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(format!("`{}` stands outside of any element", text.trim())),
    }
    Ok(())
}

fn add_referenced(text: &str, open: &mut [Element]) -> Result<(), String> {
    let Some(element) = open.last_mut() else {
        return Err("a character stands outside of any element".to_owned());
    };
    let start = element.text.len();
    element.text.push_str(text);
    let first = element.referenced.map_or(start, |(first, _)| first);
    element.referenced = Some((first, element.text.len()));
    Ok(())
}

fn resolved(reference: &BytesRef<'_>) -> Result<String, String> {
    let character = reference.resolve_char_ref().map_err(|error| error.to_string())?;
    match (character, resolve_xml_entity(reference)) {
        (Some(character), _) => Ok(character.to_string()),
        (None, Some(text)) => Ok(text.to_owned()),
        (None, None) => Err(format!("&{}; is no entity of XML's own", &**reference)),
    }
}
