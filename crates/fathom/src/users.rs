//! The other users of written targets: reported before the first trial, and checked again before
//! each later one, because a sweep takes hours and another program may have come.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fathom_core::facts::Target;
use fathom_core::spec::Stream;
use fathom_engine::host::{self, User};
use fathom_engine::target::{self, OpenTarget, Overwrite};

use crate::error::Error;
use crate::{hanging, output};

/// The reported users, and the time of the next search through processes.
static TOLD: Mutex<UsersTold> = Mutex::new(UsersTold { users: BTreeSet::new(), next: None });

struct UsersTold {
    /// By the target's path and the process, so that no user is reported twice.
    users: BTreeSet<(String, u32)>,
    next: Option<Instant>,
}

/// A search through all processes takes seconds if there are thousands. A pause of this many times
/// as long, and at least of a second, limits it to a twentieth of a session of short trials.
const PAUSE: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The open targets that are written to.
#[derive(Clone, Default)]
pub struct Overwritten(Arc<Files>);

#[derive(Default)]
struct Files {
    targets: Vec<(Target, OpenTarget)>,
    consent: Overwrite,
}

impl fmt::Debug for Overwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.targets.iter().map(|(target, _)| &target.name)).finish()
    }
}

impl Overwritten {
    /// For the targets of these streams: for each stream a target for each of its regions.
    pub fn of(
        facts: &[Target],
        (streams, opened): (&[Stream], &[Vec<OpenTarget>]),
        consent: Overwrite,
    ) -> Self {
        let written = streams.iter().zip(opened).filter(|(stream, _)| stream.destroys());
        let each: BTreeMap<u32, &OpenTarget> = written
            .flat_map(|(stream, open)| stream.regions.iter().map(|it| it.target).zip(open))
            .collect();
        let with_facts =
            |(at, open): (u32, &OpenTarget)| (facts[at as usize].clone(), open.clone());
        let targets = each.into_iter().map(with_facts).collect();
        Self(Arc::new(Files { targets, consent }))
    }

    /// Checks for users that forbid writing to them; and from time to time for other processes that
    /// have them open, to report new ones.
    ///
    /// # Errors
    ///
    /// When a use of one forbids writing to it, for example by a loop device that has shown it
    /// since, or when one hangs.
    pub fn look_again(&self) -> Result<(), Error> {
        let Some((first, _)) = self.0.targets.first() else { return Ok(()) };
        let files = Arc::clone(&self.0);
        hanging::waited_for(&first.name, "it was asked for who uses it", move || {
            for (facts, open) in &files.targets {
                target::judge_again(facts, open, &files.consent)?;
                hanging::come_through();
            }
            let is_due = told().next.is_none_or(|next| next <= Instant::now());
            if is_due {
                tell(&files.targets.iter().map(|(facts, _)| facts).collect::<Vec<_>>());
            }
            Ok(())
        })
    }
}

/// Reports the programs that have targets open or locked which are to be written to: fathom may
/// overwrite the data that they use.
pub fn tell(written: &[&Target]) {
    if written.is_empty() {
        return;
    }
    let begun = Instant::now();
    let found = host::users(written);
    let mut told = told();
    told.next = Some(Instant::now() + PAUSE_MIN.max(begun.elapsed() * PAUSE));
    for (target, mut users) in written.iter().zip(found) {
        users.retain(|user| told.users.insert((target.path.clone(), user.process)));
        if !users.is_empty() {
            output::note_folded(&in_words(target, &users));
        }
    }
}

fn told() -> MutexGuard<'static, UsersTold> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_words(target: &Target, users: &[User]) -> String {
    const SHOWN: usize = 3;
    let named = users.iter().take(SHOWN).map(|user| {
        let how = match (user.writes, user.locks) {
            (true, true) => "writing to it and locking it",
            (true, false) => "open for writing",
            (false, true) => "locking it",
            (false, false) => "open for reading",
        };
        format!("{} ({}, {how})", user.name, user.process)
    });
    let named: Vec<String> = named.collect();
    let more = match users.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (name, named) = (&target.name, named.join(", "));
    format!("{name} is in use by {named}{more}, and this overwrites it")
}
