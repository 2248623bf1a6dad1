//! The forms in which an answer says when to come back.

use super::headers::decimal;
use crate::spec::WaitForm;
use crate::time::{ceil_seconds, http_date, rfc3339, strftime};

/// What an answer told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) headers: Vec<(String, String)>,
    /// A member for a JSON body: name and value.
    pub(crate) member: Option<(String, String)>,
    /// The wait that a client must keep, in ms from now; none: nothing was told that could be kept.
    pub(crate) wait_ms: Option<i64>,
}

/// Tells a wait of `ms` in this form. Whole seconds are rounded up. `server_now` is the vendor's own clock.
pub(crate) fn tell(form: WaitForm, ms: i64, server_now: i64) -> Told {
    let seconds = ceil_seconds(ms);
    // The first whole second at which the wait is over.
    let date = ceil_seconds(server_now + ms) * 1000;
    let header = |name: &str, value: String, wait_ms: Option<i64>| Told {
        headers: vec![(name.into(), value)],
        member: None,
        wait_ms,
    };
    let retry_after = |value: String, wait_ms: Option<i64>| header("retry-after", value, wait_ms);
    let member = |name: &str, value: String| Told {
        headers: Vec::new(),
        member: Some((name.into(), value)),
        wait_ms: Some(ms),
    };
    match form {
        WaitForm::None => Told::default(),
        WaitForm::Seconds => retry_after(seconds.to_string(), Some(seconds * 1000)),
        WaitForm::Decimal => retry_after(decimal(ms), Some(ms)),
        WaitForm::HttpDate => retry_after(http_date(date), Some(date - server_now)),
        WaitForm::Rfc850 => retry_after(
            strftime(date, "%A, %d-%b-%y %H:%M:%S GMT"),
            Some(date - server_now),
        ),
        WaitForm::Asctime => retry_after(
            strftime(date, "%a %b %e %H:%M:%S %Y"),
            Some(date - server_now),
        ),
        WaitForm::Rfc3339 => retry_after(rfc3339(date, 0), Some(date - server_now)),
        WaitForm::RetryAfterMs => header("retry-after-ms", ms.to_string(), Some(ms)),
        WaitForm::XMsRetryAfterMs => header("x-ms-retry-after-ms", ms.to_string(), Some(ms)),
        WaitForm::XRetryAfter => header("x-retry-after", seconds.to_string(), Some(seconds * 1000)),
        WaitForm::XRateLimitRetryAfter => header(
            "x-ratelimit-retry-after",
            seconds.to_string(),
            Some(seconds * 1000),
        ),
        WaitForm::BodyMs => member("retry_after_ms", ms.to_string()),
        WaitForm::BodySeconds => member("retry_after", decimal(ms)),
        WaitForm::Zero => retry_after("0".into(), None),
        WaitForm::Negative => retry_after("-1".into(), None),
        WaitForm::Garbage => retry_after("soon".into(), None),
        WaitForm::Past => retry_after(http_date(server_now - 40_000), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::read_http_date;

    const NOW: i64 = 1_930_384_800_400;

    fn value(form: WaitForm) -> (String, Option<i64>) {
        let told = tell(form, 89_997, NOW);
        (told.headers[0].1.clone(), told.wait_ms)
    }

    #[test]
    fn every_form_tells_at_least_the_wait() {
        assert_eq!(value(WaitForm::Seconds), ("90".into(), Some(90_000)));
        assert_eq!(value(WaitForm::Decimal), ("89.997".into(), Some(89_997)));
        assert_eq!(
            value(WaitForm::RetryAfterMs),
            ("89997".into(), Some(89_997))
        );
        assert_eq!(
            value(WaitForm::Rfc3339),
            ("2031-03-04T10:01:31Z".into(), Some(90_600))
        );
        for form in [WaitForm::HttpDate, WaitForm::Rfc850, WaitForm::Asctime] {
            let (text, wait_ms) = value(form);
            assert_eq!(read_http_date(&text), Some(1_930_384_891_000), "{text}");
            assert_eq!(wait_ms, Some(90_600));
        }
        assert_eq!(
            tell(WaitForm::BodySeconds, 2500, NOW).member,
            Some(("retry_after".into(), "2.500".into()))
        );
    }

    #[test]
    fn what_cannot_be_kept_is_no_wait() {
        for form in [
            WaitForm::Zero,
            WaitForm::Negative,
            WaitForm::Garbage,
            WaitForm::Past,
            WaitForm::None,
        ] {
            assert_eq!(tell(form, 5000, NOW).wait_ms, None);
        }
    }
}
