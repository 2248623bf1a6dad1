//! What goes over the wire, without the wire: one request, one answer, or the lack of one.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use percent_encoding::percent_decode_str;

/// A request as the vendor sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimRequest {
    /// `GET`
    pub method: String,
    /// The origin it was sent to, for links that the vendor gives: `http://127.0.0.1:4000`.
    pub origin: String,
    /// The path, decoded.
    pub path: String,
    /// The query as it came, without `?`.
    pub raw_query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

impl SimRequest {
    /// A GET of this URL. Anything that is no URL is taken as a path.
    pub fn get(url: &str) -> Self {
        let (origin, target) = match url.find("://") {
            Some(scheme) => {
                let rest = url.get(scheme + 3..).unwrap_or_default();
                let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                url.split_at(scheme + 3 + host)
            }
            None => ("", url),
        };
        let target = target.split_once('#').map_or(target, |(target, _)| target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        SimRequest {
            method: "GET".into(),
            origin: origin.into(),
            path: decode(if path.is_empty() { "/" } else { path }),
            raw_query: query.into(),
            headers: Vec::new(),
        }
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// The first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The query's parameters, decoded, in their order.
    pub fn query(&self) -> Vec<(String, String)> {
        self.raw_query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode_form(name), decode_form(value))
            })
            .collect()
    }
}

fn decode_form(text: &str) -> String {
    if text.contains('+') {
        return decode(&text.replace('+', " "));
    }
    decode(text)
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum SimAnswer {
    /// A whole answer.
    Response(SimResponse),
    /// The answer begins, and the connection ends after this many bytes of its body.
    Broken {
        /// What would have come.
        response: SimResponse,
        /// How much of the body comes.
        sent: usize,
    },
    /// The answer's body goes on with spaces up to this length.
    Huge {
        /// Its head, and the beginning of its body.
        response: SimResponse,
        /// The body's whole length.
        bytes: u64,
    },
    /// The connection is reset without an answer, after so many ms.
    Reset {
        /// After how long.
        after_ms: u64,
    },
    /// Nothing, ever: the client's own timeout ends it.
    Hang,
}

impl SimAnswer {
    /// The answer, where there is a whole one.
    pub fn response(&self) -> Option<&SimResponse> {
        match self {
            SimAnswer::Response(response) => Some(response),
            _ => None,
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body as sent, which may be compressed: see [`SimResponse::decoded`].
    pub body: Bytes,
    /// How long the vendor takes for it, in ms.
    pub latency_ms: u64,
}

impl SimResponse {
    /// The first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// Puts a header in place of all others of its name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.headers.retain(|(have, _)| have != name);
        self.headers.push((name.into(), value.into()));
    }

    /// The body's content, as a client has it after decoding.
    ///
    /// # Errors
    /// A compressed body that stops in the middle or is damaged: what a client sees as a broken answer.
    pub fn decoded(&self) -> std::io::Result<Bytes> {
        if self.header("content-encoding") != Some("gzip") {
            return Ok(self.body.clone());
        }
        let mut content = Vec::new();
        GzDecoder::new(self.body.as_ref()).read_to_end(&mut content)?;
        Ok(content.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_comes_apart() {
        let request = SimRequest::get(
            "http://127.0.0.1:80/a%20b?since=2031-03-04T10%3A00%3A00Z&x=a+b&flag#top",
        );
        assert_eq!(request.origin, "http://127.0.0.1:80");
        assert_eq!(request.path, "/a b");
        let pairs = [
            ("since", "2031-03-04T10:00:00Z"),
            ("x", "a b"),
            ("flag", ""),
        ];
        assert_eq!(
            request.query(),
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(SimRequest::get("http://h").path, "/");
        assert_eq!(SimRequest::get("/p?a=1").path, "/p");
    }
}
