//! The part of a region that belongs to one of several hosts.

use fathom_core::Bytes;
use fathom_core::plan::zone;
use fathom_core::spec::{Ios, Pattern, Sequence, Starts, Stream};

use super::Blame;
use crate::cli::described::{Described, HostPlace};
use crate::cli::options::ByHost;
use crate::error::Error;

/// Refuses a division where hosts get points in full: such a point has the regions whole, and each host
/// would address all of them.
///
/// # Errors
///
/// When a stream is to be divided.
pub fn refuse_with_points(described: &Described) -> Result<(), Blame> {
    let divided = |(place, how): (usize, Option<ByHost>)| Some((place, how?));
    let streams = described.streams.iter().map(|stream| stream.access.by_host);
    let Some((place, how)) = streams.enumerate().find_map(divided) else { return Ok(()) };
    let problem =
        "the experiment makes its points for the whole region, and each host would have all of it";
    let remedy = "drop it; run and sweep divide a file";
    Err(Blame { stream: Some(place), error: Error::option(in_words(how), problem, remedy) })
}

/// Leaves a stream of its regions what belongs to this host.
///
/// # Errors
///
/// When one machine applies the load alone, or the regions cannot be divided like that.
pub(super) fn divide(
    stream: &mut Stream,
    how: ByHost,
    place: Option<HostPlace>,
) -> Result<(), Error> {
    let option = in_words(how);
    let Some(place) = place else {
        let problem = "one machine applies the load, and has all of the region";
        return Err(Error::option(option, problem, "drop it, or use fathom-hosts"));
    };
    let too_small = |length: Bytes, block: Bytes| {
        let problem =
            format!("{} hosts cannot divide {length} into blocks of {block}", place.hosts);
        let remedy = "use fewer hosts, a larger region or a smaller block";
        Err(Error::option(option, problem, remedy))
    };
    let largest = stream.block_sizes().largest();
    match how {
        ByHost::Zones => {
            let unit = stream.alignment();
            for region in &mut stream.regions {
                let shortest = region.length.0 / unit.0 / u64::from(place.hosts) * unit.0;
                if Bytes(shortest) < largest {
                    return too_small(region.length, largest);
                }
                *region = zone(region, unit, place.number, place.hosts);
            }
        }
        ByHost::Blocks => {
            let hosts = u64::from(place.hosts);
            let block = in_steps(stream, option, hosts)?;
            for region in &mut stream.regions {
                let all = region.length.0 / block.0;
                // Each host has as many as every other one.
                let all = all - all % hosts;
                if all == 0 {
                    return too_small(region.length, block);
                }
                region.offset.0 += u64::from(place.number) * block.0;
                region.length = Bytes((all - hosts + 1) * block.0);
            }
        }
    }
    Ok(())
}

/// Makes a stream step over the blocks of the other hosts: returns the size of a block.
fn in_steps(stream: &mut Stream, option: &str, hosts: u64) -> Result<Bytes, Error> {
    let refuse = |problem: &str, remedy: &str| Err(Error::option(option, problem, remedy));
    if stream.zones {
        return refuse("the zones of workers are not steps over blocks", "drop --zones");
    }
    let Ios::Alike(kind) = &mut stream.ios else {
        return refuse("the I/Os are of several kinds", "use one kind, or --by-host zones");
    };
    let Some(block) = kind.block_sizes.only() else {
        return refuse("the blocks are of several sizes", "use one size, or --by-host zones");
    };
    let own = kind.align.or(kind.pattern.stride()).or(kind.pattern.start_distance());
    if own.is_some() {
        let problem = "the I/Os have a distance of their own";
        return refuse(problem, "drop --align, the stride or --start-distance");
    }
    let step = Some(Bytes(hosts * block.0)).filter(|_| 1 < hosts);
    match &mut kind.pattern {
        Pattern::Sequential(Sequence { stride, starts: Starts::Spread, .. })
        | Pattern::Interlocked { stride } => *stride = step,
        _ => kind.align = step,
    }
    Ok(block)
}

fn in_words(how: ByHost) -> &'static str {
    match how {
        ByHost::Zones => "--by-host zones",
        ByHost::Blocks => "--by-host blocks",
    }
}
