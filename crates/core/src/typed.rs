//! Names as they have to be typed into a shell: advice that contains a command is copied from the
//! screen, whatever the name in it.

/// A word of a command line, quoted where a shell would take it for something else.
pub fn typed_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The name of a file, quoted, and never to be taken for an option.
pub fn typed_path(name: &str) -> String {
    match name.starts_with('-') {
        true => typed_word(&format!("./{name}")),
        false => typed_word(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_name_can_be_typed() {
        for (name, word) in [
            ("/data/a-b_1.dat", "/data/a-b_1.dat"),
            ("my file", "'my file'"),
            ("-x", "./-x"),
            ("-x y", "'./-x y'"),
            ("it's", r"'it'\''s'"),
            ("日本", "日本"),
            ("", "''"),
        ] {
            assert_eq!(typed_path(name), word);
        }
        assert_eq!(typed_word("-d"), "-d");
    }
}
