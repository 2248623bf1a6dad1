//! Saying which key cannot work, and what would be right.

use weir_sdk::Fault;

/// What is wrong with one key.
pub(super) struct Problem {
    pub(super) key: String,
    pub(super) what: String,
}

/// A key that has been checked.
pub(super) type Checked<T> = Result<T, Problem>;

/// This key is wrong.
pub(super) fn problem<T>(key: impl Into<String>, what: impl Into<String>) -> Checked<T> {
    Err(Problem {
        key: key.into(),
        what: what.into(),
    })
}

/// A configuration that cannot work: only its author can fix it.
pub(crate) fn misconfigured(key: &str, what: &str) -> Fault {
    Fault::permanent(format!("config.{key}: {what}")).code("config")
}

/// A JSON pointer is empty or begins with a slash.
pub(super) fn pointer_in(key: &str, pointer: &str) -> Checked<()> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return problem(
            key,
            format!(
                "`{pointer}` is no JSON pointer: write \"/{}\"",
                pointer.replace('.', "/")
            ),
        );
    }
    Ok(())
}
