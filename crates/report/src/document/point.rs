//! Reads the description of a load, in this version's form and in that of version 1.

use fathom_core::spec::Point;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::version1;

/// Reads a point of either version. What the I/Os of a stream are like is in its `ios`; in version 1 it
/// was in its `pattern` and the fields beside that.
pub(super) fn of_either_version<'de, D: Deserializer<'de>>(file: D) -> Result<Point, D::Error> {
    let json = Value::deserialize(file)?;
    let is_old = json["streams"].get(0).is_some_and(|stream| stream.get("pattern").is_some());
    if is_old {
        let old = version1::Point::deserialize(json).map_err(de::Error::custom)?;
        return old.into_core().map_err(de::Error::custom);
    }
    Point::deserialize(json).map_err(de::Error::custom)
}
