//! Lengths of time on the command line, written as in `weir.toml`.

/// Reads `500ms`, `30s`, `5m`, `1h`, `1d`, or `0`, as milliseconds.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    crate::config::duration(text).map_err(|what| {
        format!("it {what}: write a whole number and a unit (ms, s, m, h, d), such as 30s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_the_configuration_and_nothing() {
        assert_eq!(parse("1m"), Ok(60_000));
        assert_eq!(parse("0"), Ok(0));
        let refused = parse("1minute").unwrap_err();
        assert!(refused.contains("30s"), "{refused}");
    }
}
