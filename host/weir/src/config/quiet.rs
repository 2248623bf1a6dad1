//! `quiet`: hours of the day in which a stream is not polled.

use jiff::tz::{Offset, TimeZone};
use weir_rules::model::Timestamp;
use weir_rules::quiet::{QuietHours, after_quiet};

use super::reader::{Entry, Report};

/// `quiet = ["01:00-02:30"]` (UTC), or `quiet = { hours = ["01:00-02:30"], zone = "Europe/Berlin" }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quiet {
    hours: Vec<QuietHours>,
    zone: TimeZone,
}

impl Default for Quiet {
    fn default() -> Self {
        Quiet {
            hours: Vec::new(),
            zone: TimeZone::UTC,
        }
    }
}

const HELP: &str = "example: quiet = [\"01:00-02:30\"] (UTC) or \
                    quiet = { hours = [\"01:00-02:30\"], zone = \"Europe/Berlin\" }";

impl Quiet {
    /// The first moment from `at` on at which a poll may begin.
    pub fn after(&self, at: Timestamp) -> Timestamp {
        if self.hours.is_empty() {
            return at;
        }
        after_quiet(&self.hours, at, |at| {
            let at = jiff::Timestamp::from_millisecond(at);
            at.map_or(0, |at| i64::from(self.zone.to_offset(at).seconds()) * 1_000)
        })
    }

    /// The quiet hours in which the moment lies have an end: what to say of it, and when it is.
    pub fn end(&self, at: Timestamp) -> Option<(Timestamp, String)> {
        let end = self.after(at);
        (end > at).then(|| {
            let shown = jiff::Timestamp::from_millisecond(end).map_or_else(
                |_| end.to_string(),
                |end| {
                    end.to_zoned_datetime(self.zone.clone())
                        .strftime("%Y-%m-%d %H:%M%:z")
                        .to_string()
                },
            );
            (end, format!("quiet hours until {shown}"))
        })
    }

    pub(super) fn read(at: &Entry<'_>, report: &mut Report<'_>) -> Quiet {
        let mut quiet = Quiet::default();
        if !at.value.is_table() {
            quiet.hours = hours(at, report);
            return quiet;
        }
        let Some(mut section) = at.section(report, HELP) else {
            return quiet;
        };
        match section.get(report, "hours") {
            Some(at) => quiet.hours = hours(&at, report),
            None => report.missing(&section, "hours", HELP),
        }
        if let Some(at) = section.get(report, "zone")
            && let Some(name) = at.filled(report, HELP)
        {
            match zone(name) {
                Some(zone) => quiet.zone = zone,
                None => report.complain(
                    &at,
                    "is not a time zone",
                    "allowed: a name such as Europe/Berlin, or an offset such as +02:00",
                ),
            }
        }
        section.finish(report);
        quiet
    }
}

fn hours(at: &Entry<'_>, report: &mut Report<'_>) -> Vec<QuietHours> {
    let texts = at.texts(report, HELP).unwrap_or_default();
    let mut hours = Vec::with_capacity(texts.len());
    for text in texts {
        match text.parse() {
            Ok(quiet) => hours.push(quiet),
            Err(error) => {
                let error: weir_rules::quiet::QuietHoursError = error;
                report.complain(at, &format!("is wrong: {error}"), HELP);
            }
        }
    }
    hours
}

fn zone(name: &str) -> Option<TimeZone> {
    if name.starts_with(['+', '-']) {
        // As far behind UTC as its midnight comes later.
        let midnight: jiff::Timestamp = format!("1970-01-01T00:00:00{name}").parse().ok()?;
        let behind = i32::try_from(midnight.as_second()).ok()?;
        return Offset::from_seconds(-behind).ok().map(TimeZone::fixed);
    }
    TimeZone::get(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(hours: &str, place: &str) -> Quiet {
        Quiet {
            hours: vec![hours.parse().unwrap()],
            zone: zone(place).unwrap(),
        }
    }

    fn ms(text: &str) -> Timestamp {
        text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn the_hours_are_those_of_their_zone_in_summer_and_in_winter() {
        let berlin = quiet("01:00-02:30", "Europe/Berlin");
        let summer = ms("2031-07-01T23:10:00Z");
        assert_eq!(berlin.after(summer), ms("2031-07-02T00:30:00Z"));
        let winter = ms("2031-01-01T23:10:00Z");
        assert_eq!(
            berlin.after(winter),
            winter,
            "it is ten past midnight there"
        );
        let fixed = quiet("01:00-02:30", "+05:30");
        assert_eq!(
            fixed.after(ms("2031-01-01T20:00:00Z")),
            ms("2031-01-01T21:00:00Z")
        );
        let (_, said) = berlin.end(summer).unwrap();
        assert_eq!(said, "quiet hours until 2031-07-02 02:30+02:00");
    }

    #[test]
    fn what_is_no_zone_is_none() {
        for name in ["Europe/Berlinn", "+2", "", "+26:00"] {
            assert!(zone(name).is_none(), "{name}");
        }
        assert!(zone("-03:30").is_some());
    }
}
