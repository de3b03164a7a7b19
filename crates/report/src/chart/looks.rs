//! The looks of series: few have a color each; many have a color for each family, or a shade for
//! each size.

use fathom_core::facts::SEPARATORS;

use super::{Form, Paint, SERIES, Shape};

/// The color and the form of each series, in their order. `rising` says that their names are rising
/// numbers.
pub fn looks(names: &[String], rising: bool) -> Vec<(Paint, Form)> {
    let many = names.len() > SERIES.len();
    if !many {
        return (0..names.len())
            .map(|nth| (Paint::Nth(nth), Form::Dotted(Shape::nth(nth))))
            .collect();
    }
    if rising {
        let shade = |nth: usize| Paint::Shade { nth, of: names.len() };
        return (0..names.len()).map(|nth| (shade(nth), Form::Dotted(Shape::nth(nth)))).collect();
    }
    let mut families: Vec<&str> = Vec::new();
    let mut places = Vec::new();
    for name in names {
        let family = family(name);
        let nth = families.iter().position(|one| *one == family).unwrap_or_else(|| {
            families.push(family);
            families.len() - 1
        });
        let before = places.iter().filter(|(other, _)| *other == nth).count();
        places.push((nth, before));
    }
    // Without families, the colors repeat with other lines.
    let tells = 1 < families.len() && families.len() <= SERIES.len();
    let places = match tells {
        true => places,
        false => (0..names.len()).map(|nth| (nth % SERIES.len(), nth / SERIES.len())).collect(),
    };
    let look = |(color, member): (usize, usize)| {
        let shape = Shape::nth(member);
        let form = if member % 2 == 0 { Form::Dotted(shape) } else { Form::Dashed(shape) };
        (Paint::Nth(color), form)
    };
    places.into_iter().map(look).collect()
}

/// A name without the size at its end: "random 4k" is of the family "random".
fn family(name: &str) -> &str {
    match name.rsplit_once(SEPARATORS) {
        Some((family, size)) if size.contains(|one: char| one.is_ascii_digit()) => family,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn few_series_have_a_color_each_and_no_two_of_many_look_alike() {
        let counted = |count: usize, word: &str| -> Vec<String> {
            (0..count).map(|nth| format!("{word}{nth}")).collect()
        };
        let few = looks(&counted(8, "d"), false);
        assert!(few.iter().enumerate().all(|(nth, look)| look.0 == Paint::Nth(nth)));
        for (many, rising) in [(counted(16, "d"), false), (counted(12, ""), true)] {
            let looks = looks(&many, rising);
            for (nth, look) in looks.iter().enumerate() {
                assert!(!looks[..nth].contains(look), "{nth} of {many:?}: {look:?}");
            }
        }
    }

    #[test]
    fn a_family_has_one_color() {
        let many = names(&[
            "random 4k",
            "random 8k",
            "random 16k",
            "random 64k",
            "sequential 4k",
            "sequential 8k",
            "sequential 16k",
            "sequential 64k",
            "zipf",
        ]);
        let looks = looks(&many, false);
        let color = |nth: usize| looks[nth].0;
        assert!((0..4).all(|nth| color(nth) == Paint::Nth(0)), "{looks:?}");
        assert!((4..8).all(|nth| color(nth) == Paint::Nth(1)), "{looks:?}");
        assert_eq!(color(8), Paint::Nth(2));
        assert_eq!(looks[0].1, Form::Dotted(Shape::Circle));
        assert_eq!(looks[1].1, Form::Dashed(Shape::Square));
    }
}
