//! Options of other tools that people type from habit, each with what it is here.

/// The names of an option elsewhere, and the answer.
const HABITS: [(&[&str], &str); 23] = [
    (&["--bs", "--blocksize", "--block_size"], "the size of an I/O is -b, as in -b 4k"),
    (
        &["--iodepth", "--io-depth", "--qd", "--depth", "--outstanding"],
        "the I/Os in flight, all workers together, are -q, as in -q 32; -q 8/worker is for each",
    ),
    (
        &["--rw", "--readwrite"],
        "--pattern random or sequential says where, and --read-share 100% how many are reads",
    ),
    (
        &["--rwmixread", "--rwmix-read"],
        "the share of reads is --read-share, as in --read-share 70%",
    ),
    (&["--rwmixwrite", "--rwmix-write"], "the share of reads is --read-share: 30% writes are 70%"),
    (&["--numjobs", "--threads", "--jobs"], "threads are --workers, as in --workers 4"),
    (&["--runtime", "--time", "--timeout"], "the window's length is -d, as in -d 60s"),
    (&["--ramp_time", "--ramp-time", "--ramp"], "load before the window is --warm-up 10s"),
    (&["--name"], "a run needs no name; the files of its reports are named by --out and --html"),
    (&["--filename", "--file"], "targets are named without an option: `fathom run test.dat`"),
    (&["--ioengine", "--engine"], "the way to the kernel is --backend: uring, aio or sync"),
    (&["--direct"], "direct access is the rule; --buffered goes through the page cache"),
    (
        &["--time_based", "--time-based"],
        "a run always lasts as long as -d says, unless it has --stop-after",
    ),
    (&["--group_reporting"], "workers are always reported together, and each in --csv"),
    (&["--rate_iops", "--rate-iops"], "an open loop is --rate 10k; a bandwidth is --rate 100MB/s"),
    (
        &["--randseed", "--allrandrepeat", "--randrepeat"],
        "--seed 1 gives the same offsets on each run",
    ),
    (&["--norandommap"], "--pattern random repeats offsets; --no-repeat does not"),
    (&["--buffer_compress_percentage", "--dedupe_percentage"], "see --compressible and --dedup"),
    (&["--zero_buffers"], "zeros are written with --payload zeros"),
    (
        &["--output", "--output-file"],
        "the result file is --out; `fathom report` shows it in other forms",
    ),
    (
        &["--output-format"],
        "--json prints the result, and --csv FILE and --html FILE write reports",
    ),
    (&["--thinktime"], "--think-time 1ms is a rest after each I/O"),
    (
        &["--plan", "--dry-run"],
        "`fathom plan` shows what `fathom run` would do with the same arguments",
    ),
];

/// What an option that fathom does not have is here, if people know it from another tool.
pub fn answer(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option).to_ascii_lowercase();
    HABITS.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn an_option_of_another_tool_is_answered_with_one_that_exists() {
        assert!(answer("--bs=4k").unwrap().contains("-b 4k"));
        assert!(answer("--IODEPTH").unwrap().contains("-q 32"));
        assert_eq!(answer("--no-such-option"), None);
        let command = Args::command();
        let run = command.find_subcommand("run").unwrap();
        let long: Vec<&str> = run.get_arguments().filter_map(|arg| arg.get_long()).collect();
        for (names, answer) in HABITS {
            assert!(
                names.iter().all(|name| !long.contains(&name.trim_start_matches('-'))),
                "{names:?}"
            );
            let words = answer.split([' ', ',', ';', ':', '`', ')']);
            for option in words.filter_map(|word| word.strip_prefix("--")) {
                assert!(long.contains(&option), "{answer} names --{option}");
            }
        }
    }
}
