//! Lists of CPUs: `-a0,1,2` and `-ag0,0,1,2,g1,0,1,2`.

use super::model::Cpu;

/// Reads the text after `-a`; an empty text and `g` alone list none.
///
/// # Errors
///
/// When it is not such a list.
pub fn read(text: &str) -> Result<Vec<Cpu>, String> {
    let mut cpus = Vec::new();
    if matches!(text, "" | "g") {
        return Ok(cpus);
    }
    let mut group = 0;
    // A group has to have its own CPUs.
    let mut open = None;
    for item in text.split(',') {
        match item.strip_prefix('g') {
            Some(number) => {
                if let Some(open) = open {
                    return Err(format!("group {open} has no CPUs"));
                }
                group = number.parse().map_err(|_| wrong(item, "processor group", u16::MAX))?;
                open = Some(group);
            }
            None => {
                let number = item.parse().map_err(|_| wrong(item, "CPU", u16::from(u8::MAX)))?;
                cpus.push(Cpu { group, number });
                open = None;
            }
        }
    }
    match open {
        None => Ok(cpus),
        Some(open) => Err(format!("group {open} has no CPUs")),
    }
}

fn wrong(item: &str, what: &str, most: u16) -> String {
    match item {
        "" => format!("a {what} is missing"),
        _ => format!("`{item}` is no {what}: its number is from 0 to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match read(text) {
            Err(problem) => problem,
            Ok(cpus) => {
                let one = |cpu: &Cpu| format!("{}/{}", cpu.group, cpu.number);
                cpus.iter().map(one).collect::<Vec<_>>().join(" ")
            }
        }
    }

    #[test]
    fn cpus_belong_to_the_group_before_them() {
        for (text, cpus) in [
            ("", ""),
            ("g", ""),
            ("1,4,6", "0/1 0/4 0/6"),
            ("g0,1,4,g1,2", "0/1 0/4 1/2"),
            ("0,g65535,255", "0/0 65535/255"),
        ] {
            assert_eq!(told(text), cpus, "{text}");
        }
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        for (text, problem) in [
            ("g0", "group 0 has no CPUs"),
            ("gg", "`gg` is no processor group"),
            ("g,0,1", "`g` is no processor group"),
            ("1,", "a CPU is missing"),
            ("g1,0,", "a CPU is missing"),
            ("g1,0,g", "`g` is no processor group"),
            ("g1,0,g2", "group 2 has no CPUs"),
            ("g0,g1,0", "group 0 has no CPUs"),
            ("x", "`x` is no CPU"),
            ("g0,300", "`300` is no CPU: its number is from 0 to 255"),
            ("g70000,1", "`g70000` is no processor group: its number is from 0 to 65535"),
            ("0-3", "`0-3` is no CPU"),
        ] {
            let told = told(text);
            assert!(told.starts_with(problem), "{text}: {told}");
        }
    }
}
