//! Masks known secrets in any text, in the forms in which they turn up.
//!
//! The host knows its own secrets, so whatever is logged, stored or printed can be searched for them: as they are,
//! percent-encoded, in base64, and escaped for JSON. Tokens that are renewed while the host runs are known from the moment
//! that they come, and for a while after they have been replaced. Secrets shorter than four characters are left alone: masking
//! them would spoil every text and protect nothing.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands where a secret was.
const MASK: &str = "[secret]";

/// Below this many bytes a text is no secret.
const SHORTEST: usize = 4;

/// Knows secrets and masks them. Prints as nothing but a count.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a form which contains another one is masked whole.
    forms: Arc<[String]>,
    live: Option<Live>,
}

/// How many secrets that come and go are known at once.
const RECENT: usize = 16;

/// Secrets that come and go: the newest of them.
#[derive(Clone, Default)]
pub struct Live {
    /// Each with all its forms, the secret itself first.
    recent: Arc<ArcSwap<Vec<Arc<[String]>>>>,
}

impl Live {
    /// From now on this is masked too.
    pub fn add(&self, secret: &str) {
        if secret.len() < SHORTEST {
            return;
        }
        let known = |recent: &[Arc<[String]>]| {
            recent
                .iter()
                .any(|forms| forms.first().is_some_and(|first| first == secret))
        };
        if known(&self.recent.load()) {
            return;
        }
        let added: Arc<[String]> = forms(secret).into();
        self.recent.rcu(|recent| {
            let kept = recent.len().min(RECENT - 1);
            let kept = recent.iter().skip(recent.len() - kept).cloned();
            kept.chain([added.clone()]).collect::<Vec<_>>()
        });
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

impl Redactor {
    /// One that masks all of these.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Redactor::of(
            secrets
                .into_iter()
                .filter(|secret| secret.len() >= SHORTEST)
                .flat_map(forms)
                .collect(),
        )
    }

    /// One that masks what any of these masks, whatever comes and goes aside.
    pub fn join<'a>(redactors: impl IntoIterator<Item = &'a Redactor>) -> Self {
        Redactor::of(
            redactors
                .into_iter()
                .flat_map(|redactor| redactor.forms.iter().cloned())
                .collect(),
        )
    }

    /// The same, with secrets that come and go.
    pub fn and_live(mut self, live: &Live) -> Self {
        self.live = Some(live.clone());
        self
    }

    fn of(mut forms: Vec<String>) -> Self {
        forms.retain(|form| form.len() >= SHORTEST);
        forms.sort_by(|a, b| longest_first(a, b));
        forms.dedup();
        Redactor {
            forms: forms.into(),
            live: None,
        }
    }

    /// The text without secrets; borrowed where there was none.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        let mut hide = |form: &str| {
            if masked.contains(form) {
                masked = Cow::Owned(masked.replace(form, MASK));
            }
        };
        let recent = self.live.as_ref().map(|live| live.recent.load_full());
        match recent.filter(|recent| !recent.is_empty()) {
            None => self.forms.iter().for_each(|form| hide(form)),
            Some(recent) => {
                let live = recent.iter().flat_map(|forms| forms.iter());
                let live = live.filter(|form| form.len() >= SHORTEST);
                let mut all: Vec<&String> = self.forms.iter().chain(live).collect();
                all.sort_by(|a, b| longest_first(a, b));
                all.into_iter().for_each(|form| hide(form));
            }
        }
        masked
    }
}

fn longest_first(a: &str, b: &str) -> std::cmp::Ordering {
    b.len().cmp(&a.len()).then_with(|| a.cmp(b))
}

impl Redactor {
    /// The same of a text that was cut at its end: there the beginning of a secret is one too.
    pub fn mask_beginning(&self, text: &str) -> String {
        let mut text = text;
        let mut cut = false;
        let recent = self.live.as_ref().map(|live| live.recent.load_full());
        let live = recent.iter().flat_map(|recent| recent.iter());
        let live = live.flat_map(|forms| forms.iter());
        let all: Vec<&String> = self
            .forms
            .iter()
            .chain(live.filter(|form| form.len() >= SHORTEST))
            .collect();
        // What is left may end in the beginning of another form.
        while let Some(at) = all.iter().filter_map(|form| overhang(text, form)).min() {
            cut = true;
            text = text.get(..at).unwrap_or_default();
        }
        let mut masked = self.mask(text).into_owned();
        if cut {
            masked.push_str(MASK);
        }
        masked
    }
}

/// Where the longest proper beginning of the form starts that the text ends in.
fn overhang(text: &str, form: &str) -> Option<usize> {
    let longest = form.len().saturating_sub(1).min(text.len());
    (SHORTEST..=longest)
        .rev()
        .map(|length| text.len() - length)
        .find(|at| text.get(*at..).is_some_and(|end| form.starts_with(end)))
}

/// What RFC 3986 leaves as it is in a query.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What browsers and the `url` crate leave as it is in a query.
const LAX: &AsciiSet = &percent_encoding::CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\'');

/// Every form of a secret that is looked for.
fn forms(secret: &str) -> Vec<String> {
    let strict = utf8_percent_encode(secret, STRICT).to_string();
    let all = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let lax = utf8_percent_encode(secret, LAX).to_string();
    let form = strict.replace("%20", "+");
    let json = serde_json::Value::from(secret).to_string();
    let inner = |quoted: &str| quoted.trim_matches('"').to_owned();
    let mut forms = vec![
        secret.to_owned(),
        inner(&json),
        inner(&json).replace('/', "\\/"),
    ];
    for encoded in [strict, all, lax, form] {
        forms.push(lower_hex(&encoded));
        forms.push(encoded);
    }
    forms.extend(base64_forms(secret));
    forms
}

/// `%2F` as `%2f`.
fn lower_hex(encoded: &str) -> String {
    let mut out = String::with_capacity(encoded.len());
    let mut hex = 0;
    for c in encoded.chars() {
        match c {
            '%' => hex = 2,
            _ if hex > 0 => {
                hex -= 1;
                out.push(c.to_ascii_lowercase());
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The secret in base64, alone or somewhere inside of a longer text: the characters that depend on the secret alone,
/// for each of the three ways in which it can be aligned.
fn base64_forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for ahead in 0..3_usize {
        let mut bytes = vec![0; ahead];
        bytes.extend_from_slice(secret.as_bytes());
        // Characters whose six bits lie wholly within the secret.
        let from = (ahead * 8).div_ceil(6);
        let to = bytes.len() * 8 / 6;
        for encoded in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            // A short stretch of base64 would be found by accident.
            if let Some(part) = encoded.get(from..to)
                && part.len() >= 2 * SHORTEST
            {
                forms.push(part.to_owned());
            }
        }
    }
    forms.push(STANDARD_NO_PAD.encode(secret));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    #[test]
    fn case_137_a_secret_is_masked_in_every_form() {
        let secret = "tok/XY+Z \"ä\\9f2";
        let redactor = Redactor::new([secret]);
        let url = url::Url::parse_with_params("https://a.test/", [("k", secret)]).unwrap();
        let mut raw = url::Url::parse("https://a.test/").unwrap();
        raw.set_query(Some(secret));
        let texts = [
            format!("Authorization: Bearer {secret}"),
            url.to_string(),
            raw.to_string(),
            lower_hex(url.as_str()),
            serde_json::json!({ "quoted": secret }).to_string(),
            format!("Basic {}", STANDARD.encode(secret)),
            format!("Basic {}", STANDARD.encode(format!("ops:{secret}"))),
            format!("Basic {}", STANDARD.encode(format!("o:{secret}:more"))),
        ];
        for text in texts {
            let masked = redactor.mask(&text);
            assert!(masked.contains(MASK), "{text} -> {masked}");
            assert!(!masked.contains("XY"), "{text} -> {masked}");
        }
    }

    #[test]
    fn short_secrets_and_other_texts_are_left_alone() {
        let redactor = Redactor::new(["abc", ""]);
        assert_eq!(redactor.mask("abcdef"), "abcdef");
        assert!(matches!(
            Redactor::new(["S3CR3T-9f2"]).mask("nothing here"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn secrets_that_come_are_masked_from_then_on_and_old_ones_for_a_while() {
        let live = Live::default();
        let redactor = Redactor::new(["S3CR3T"]).and_live(&live);
        assert_eq!(redactor.mask("tok_0001 S3CR3T"), "tok_0001 [secret]");
        live.add("tok_0001");
        live.add("tok_0001-S3CR3T");
        let text = "tok_0001 tok_0001-S3CR3T S3CR3T";
        assert_eq!(redactor.mask(text), "[secret] [secret] [secret]");
        for number in 2..2 + RECENT {
            live.add(&format!("tok_{number:04}"));
        }
        assert_eq!(redactor.mask("tok_0001"), "tok_0001");
        assert_eq!(redactor.mask("tok_0017 tok_0003"), "[secret] [secret]");
    }

    #[test]
    fn it_does_not_print_what_it_knows() {
        assert!(!format!("{:?}", Redactor::new(["S3CR3T-9f2"])).contains("S3CR3T"));
    }

    proptest! {
        #[test]
        fn no_secret_survives(secret in "[ -~]{8,24}", before in "[ -~]{0,8}", after in "[ -~]{0,8}") {
            let redactor = Redactor::new([secret.as_str()]);
            // The mask and the text around it could together spell the secret only if it held the mask.
            prop_assume!(!MASK.contains(&secret) && !secret.contains(MASK));
            let masked = redactor.mask(&format!("{before}{secret}{after}")).into_owned();
            prop_assert!(masked.contains(MASK));
        }

        #[test]
        fn base64_is_found_at_every_alignment(secret in "[!-~]{12,24}", ahead in 0..7_usize, behind in 0..7_usize) {
            let redactor = Redactor::new([secret.as_str()]);
            let text = STANDARD.encode(format!("{}{secret}{}", "u".repeat(ahead), "v".repeat(behind)));
            prop_assert!(redactor.mask(&text).contains(MASK), "{}", text);
        }
    }
}
