//! The lines between the coordinator and the router.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::agent::message::{AgentAnswer, AgentOrder, read_answer};

/// The version of these lines.
pub const ROUTER_PROTOCOL: u32 = 1;

/// The first line of a router.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterHello {
    /// [`ROUTER_PROTOCOL`].
    pub router: u32,
    /// The hosts, by name.
    pub hosts: Vec<String>,
}

/// Every other line of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterLine<'a> {
    /// The host.
    pub host: String,
    /// What its agent said.
    #[serde(default, borrow)]
    pub line: Option<&'a RawValue>,
    /// Why there is no agent any more.
    #[serde(default)]
    pub gone: Option<String>,
}

impl<'a> RouterLine<'a> {
    /// The host and the words of its agent, of a line as fathom-hosts writes nearly all of them. They
    /// are not read here, because the receiver reads them; none of a line of any other form.
    pub fn of_agent(line: &'a str) -> Option<(&'a str, &'a str)> {
        let (host, rest) = line.strip_prefix(r#"{"host":""#)?.split_once('"')?;
        let said = rest.strip_prefix(r#","line":"#)?.trim_end().strip_suffix('}')?;
        (!host.contains('\\') && said.starts_with('{')).then_some((host, said))
    }
}

/// A line for the agent of a host.
#[derive(Debug, Serialize)]
pub struct LineForHost<'a> {
    /// The host.
    pub host: &'a str,
    /// What is said to its agent.
    pub line: &'a AgentOrder,
}

/// What came of a host.
#[derive(Debug, PartialEq)]
pub enum FromHost {
    /// A message of its agent.
    Said(Box<AgentAnswer>),
    /// A line of its result file.
    Result(String),
    /// There is no agent any more, and why.
    Gone(String),
}

/// Reads a line of an agent.
///
/// # Errors
///
/// When it is no message.
pub fn of_agent(line: &str) -> Result<FromHost, serde_json::Error> {
    match line.starts_with(r#"{"line":"#) {
        true => Ok(FromHost::Result(line.to_owned())),
        false => read_answer(line).map(|said| FromHost::Said(Box::new(said))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_heard_and_spoken_to() {
        let hello: RouterHello = serde_json::from_str(r#"{"router":1,"hosts":["a","b"]}"#).unwrap();
        assert_eq!((hello.router, hello.hosts.len()), (1, 2));
        let text = r#"{"host":"a","line":{"message":"clock","id":7,"unix_ns":5}}"#;
        let line: RouterLine<'_> = serde_json::from_str(text).unwrap();
        let said = of_agent(line.line.unwrap().get()).unwrap();
        assert_eq!(said, FromHost::Said(Box::new(AgentAnswer::Clock { id: 7, unix_ns: 5 })));
        let result = of_agent(r#"{"line":"header","format":"x"}"#).unwrap();
        assert_eq!(result, FromHost::Result(r#"{"line":"header","format":"x"}"#.to_owned()));
        assert!(of_agent(r#"{"message":"unknown"}"#).is_err());
        let said = r#"{"message":"clock","id":7,"unix_ns":5}"#;
        assert_eq!(RouterLine::of_agent(&format!("{text}\n")), Some(("a", said)));
        for other in [
            r#"{"host":"b","gone":"it died"}"#,
            r#"{"line":{},"host":"a"}"#,
            r#"{"host":"a\"","line":{}}"#,
            r#"{"host":"a","line":"#,
        ] {
            assert_eq!(RouterLine::of_agent(other), None, "{other}");
        }
        let gone: RouterLine<'_> =
            serde_json::from_str(r#"{"host":"b","gone":"it died"}"#).unwrap();
        assert_eq!(gone.gone.as_deref(), Some("it died"));
        let order = AgentOrder::Start { at_unix_ns: 9 };
        let said = serde_json::to_string(&LineForHost { host: "a", line: &order }).unwrap();
        assert_eq!(said, r#"{"host":"a","line":{"message":"start","at_unix_ns":9}}"#);
    }
}
