//! A moment as a date and a time of day. A result file has the same date in its name and in its
//! content.

/// A moment in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// From 1970 on.
    pub year: u64,
    /// From 1 to 12.
    pub month: u64,
    /// From 1 to 31.
    pub day: u64,
    /// From 0 to 23.
    pub hour: u64,
    /// From 0 to 59.
    pub minute: u64,
    /// From 0 to 59.
    pub second: u64,
}

impl Utc {
    /// The moment this many seconds after the start of 1970. By Howard Hinnant's `civil_from_days`:
    /// years begin in March, so that the leap day is the last of its year.
    pub fn from_unix(seconds: u64) -> Self {
        let shifted = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Self { year, month, day, hour, minute, second }
    }
}
