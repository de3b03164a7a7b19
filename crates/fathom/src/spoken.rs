//! Messages in the words of the user's input: an option of fathom's has another name in a workload
//! file and in another tool's command line.

/// A text in which each option, `--name`, is called what `name` says; none where it has no name for one.
pub fn renamed(text: &str, name: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("--") {
        let after = &rest[start + 2..];
        let end = after.find(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let option = after[..end.unwrap_or(after.len())].trim_end_matches('-');
        out.push_str(&rest[..start]);
        match option {
            "" => out.push_str("--"),
            option => out.push_str(&name(option)?),
        }
        rest = &after[option.len()..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shorter(option: &str) -> Option<String> {
        matches!(option, "rate" | "queue-depth").then(|| option[..1].to_owned())
    }

    #[test]
    fn options_are_renamed_wherever_they_stand() {
        let text = "use (--rate) or --queue-depth=4, and not '--rate 1k'";
        assert_eq!(renamed(text, &shorter).as_deref(), Some("use (r) or q=4, and not 'r 1k'"));
    }

    #[test]
    fn a_text_with_an_option_that_has_no_name_is_none() {
        assert_eq!(renamed("use --rate or --zones", &shorter), None);
    }

    #[test]
    fn dashes_alone_stay() {
        assert_eq!(renamed("a -- b---", &shorter).as_deref(), Some("a -- b---"));
    }
}
