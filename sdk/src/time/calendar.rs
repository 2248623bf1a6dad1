//! Days of the proleptic Gregorian calendar and days since 1970-01-01, both ways.

/// Years that four digits can write.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;

/// A day; `month` and `day` count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Date {
    /// None for a day that the calendar does not have.
    pub(super) fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
            2 => 28,
            _ => return None,
        };
        (YEARS.contains(&year) && (1..=days).contains(&day)).then_some(Date { year, month, day })
    }

    /// Days since 1970-01-01. The year is taken to begin in March, so that the leap day is its last.
    pub(super) fn to_days(self) -> i64 {
        let year = if self.month <= 2 {
            self.year - 1
        } else {
            self.year
        };
        let month = (self.month + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
            - 719_468
    }

    /// The day that is so many days after 1970-01-01.
    pub(super) fn from_days(days: i64) -> Self {
        const ERA: i64 = 146_097; // days in 400 years
        let days = days + 719_468;
        let era = days.div_euclid(ERA);
        let day_of_era = days.rem_euclid(ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Date { year, month, day }
    }
}

/// A time of day in ms; none for one that no clock shows. A leap second counts as the second before it.
pub(super) fn time_of_day(hour: i64, minute: i64, second: i64, millis: i64) -> Option<i64> {
    let valid = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    valid.then(|| ((hour * 60 + minute) * 60 + second.min(59)) * 1000 + millis)
}

/// So many ms are in a day.
pub(super) const DAY: i64 = 86_400_000;
