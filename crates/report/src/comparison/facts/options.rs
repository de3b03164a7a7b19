//! The options that only one of two command lines has.

use fathom_core::typed_word;

use super::{Differing, FactWeight};

/// Options that say where results go and how they look, and those that only allow something.
const WITHOUT_EFFECT: [&str; 18] = [
    "--out",
    "--results",
    "--html",
    "--csv",
    "--csv-series",
    "--markdown",
    "--md",
    "--svg",
    "--png",
    "--junit",
    "--json",
    "--details",
    "--plain",
    "--name",
    "--yes",
    "--overwrite",
    "--destroy",
    "--seed",
];

/// Adds the difference between two command lines, if there is one.
pub fn compare(found: &mut Differing, before: &[String], after: &[String]) {
    found.lists(FactWeight::Likely, "options", &options(before), &options(after));
}

/// The options with their values, each as it can be typed. The words before the first option are
/// the program, its command and the targets, which are compared elsewhere.
fn options(words: &[String]) -> Vec<String> {
    let mut options: Vec<Vec<&str>> = Vec::new();
    for word in words {
        let is_option = word.len() > 1
            && word.starts_with('-')
            && !word[1..].starts_with(|next: char| next.is_ascii_digit());
        match (is_option, options.last_mut()) {
            (true, _) => options.push(word.splitn(2, '=').collect()),
            // A second word without a dash is a target after an option.
            (false, Some(option)) if option.len() == 1 => option.push(word),
            (false, _) => {}
        }
    }
    options.retain(|option| !WITHOUT_EFFECT.contains(&option[0]));
    let typed = |option: Vec<&str>| option.into_iter().map(typed_word).collect::<Vec<_>>();
    options.into_iter().map(|option| typed(option).join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_apart_from_targets_and_from_what_has_no_effect() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = "fathom run /data/a /data/b -q 32 --rate=5k --nice -5 --html x.html --seed 7 \
                    --overwrite --watch";
        assert_eq!(options(&words(line)), ["-q 32", "--rate 5k", "--nice -5", "--watch"]);
        assert!(options(&words("fathom quick")).is_empty());
    }
}
