//! Reads an answer's body: decoded, whole, and never more of it than the cap.
//!
//! The content encoding is undone here, strictly: a gzip stream without its trailer and a deflate stream without its
//! last block are broken answers, however well the text so far may parse. A body that needs no decoding and comes in
//! one piece is handed on without a copy.

use std::borrow::Cow;
use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use encoding_rs::{Encoding, UTF_8};
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Why a body could not be read whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// More decoded bytes than the cap.
    TooLarge,
    /// Cut or damaged; the text says how.
    Broken(String),
}

/// Takes chunks as they arrive.
pub(super) enum Collector {
    /// Nothing to decode.
    Plain(Plain),
    /// Compressed, and no byte has come yet: an answer to HEAD and a 304 may name an encoding and have no body.
    Waiting(Compression, Capped),
    /// RFC 1952.
    Gzip(Box<MultiGzDecoder<Capped>>),
    /// RFC 1950.
    Zlib(Box<ZlibDecoder<Capped>>),
    /// RFC 1951.
    Raw(Box<DeflateDecoder<Capped>>),
}

/// What the answer says that it is.
#[derive(Clone, Copy)]
pub(super) enum Compression {
    Gzip,
    /// Zlib by the standard, and raw by some servers: the first byte tells.
    Deflate,
}

/// Chunks as they are.
pub(super) struct Plain {
    /// The first chunk, kept as it is until a second one comes.
    first: Option<Bytes>,
    rest: BytesMut,
    expected: usize,
    limit: usize,
}

/// Decoded bytes, up to the cap.
pub(super) struct Capped {
    bytes: Vec<u8>,
    limit: usize,
    passed: bool,
}

impl Write for Capped {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.limit - self.bytes.len() {
            self.passed = true;
            return Err(io::Error::other("larger than the cap"));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Collector {
    /// For an answer with this `Content-Encoding` and, where known, this `Content-Length`.
    pub(super) fn new(
        encoding: Option<&str>,
        length: Option<u64>,
        limit: usize,
    ) -> Result<Self, BodyError> {
        let encoding = encoding.unwrap_or("identity").trim().to_ascii_lowercase();
        let capped = Capped {
            bytes: Vec::new(),
            limit,
            passed: false,
        };
        match encoding.as_str() {
            "identity" | "" => {
                let expected = match length {
                    None => 0,
                    Some(length) => usize::try_from(length)
                        .ok()
                        .filter(|length| *length <= limit)
                        .ok_or(BodyError::TooLarge)?,
                };
                Ok(Collector::Plain(Plain {
                    first: None,
                    rest: BytesMut::new(),
                    expected,
                    limit,
                }))
            }
            "gzip" | "x-gzip" => Ok(Collector::Waiting(Compression::Gzip, capped)),
            "deflate" => Ok(Collector::Waiting(Compression::Deflate, capped)),
            other => Err(BodyError::Broken(format!(
                "its content encoding {other:?} was not asked for"
            ))),
        }
    }

    /// Takes the next chunk.
    pub(super) fn push(&mut self, chunk: Bytes) -> Result<(), BodyError> {
        let Some(first) = chunk.first() else {
            return Ok(());
        };
        if let Collector::Waiting(compression, capped) = self {
            let capped = capped.take();
            // A zlib stream has its method, 8, in the low half of its first byte. In a raw stream those bits would be
            // a stored block with padding that no encoder writes.
            *self = match compression {
                Compression::Gzip => Collector::Gzip(Box::new(MultiGzDecoder::new(capped))),
                Compression::Deflate if first & 0x0f == 8 => {
                    Collector::Zlib(Box::new(ZlibDecoder::new(capped)))
                }
                Compression::Deflate => Collector::Raw(Box::new(DeflateDecoder::new(capped))),
            };
        }
        match self {
            Collector::Plain(plain) => plain.push(chunk),
            Collector::Waiting(..) => Ok(()),
            Collector::Gzip(decoder) => {
                let written = decoder.write_all(&chunk);
                told(written, decoder.get_ref())
            }
            Collector::Zlib(decoder) => {
                let written = decoder.write_all(&chunk);
                told(written, decoder.get_ref())
            }
            Collector::Raw(decoder) => {
                let written = decoder.write_all(&chunk);
                told(written, decoder.get_ref())
            }
        }
    }

    /// The whole body. A compressed one must have come to its proper end.
    pub(super) fn finish(self) -> Result<Bytes, BodyError> {
        match self {
            Collector::Plain(plain) => Ok(plain.finish()),
            Collector::Waiting(..) => Ok(Bytes::new()),
            Collector::Gzip(mut decoder) => {
                let ended = decoder.try_finish();
                told(ended, decoder.get_ref())?;
                Ok(decoder.get_mut().take().bytes.into())
            }
            Collector::Zlib(mut decoder) => {
                let ended = decoder.try_finish();
                told(ended, decoder.get_ref())?;
                Ok(decoder.get_mut().take().bytes.into())
            }
            Collector::Raw(mut decoder) => {
                let ended = decoder.try_finish();
                told(ended, decoder.get_ref())?;
                Ok(decoder.get_mut().take().bytes.into())
            }
        }
    }
}

impl Capped {
    fn take(&mut self) -> Capped {
        Capped {
            bytes: std::mem::take(&mut self.bytes),
            ..*self
        }
    }
}

fn told(result: io::Result<()>, output: &Capped) -> Result<(), BodyError> {
    match result {
        Ok(()) => Ok(()),
        Err(_) if output.passed => Err(BodyError::TooLarge),
        Err(error) => Err(BodyError::Broken(format!(
            "its compression is cut or damaged ({error})"
        ))),
    }
}

impl Plain {
    fn push(&mut self, chunk: Bytes) -> Result<(), BodyError> {
        let so_far = self.first.as_ref().map_or(self.rest.len(), Bytes::len);
        if chunk.len() > self.limit - so_far {
            return Err(BodyError::TooLarge);
        }
        match self.first.take() {
            None if self.rest.is_empty() => self.first = Some(chunk),
            first => {
                if self.rest.is_empty() {
                    self.rest.reserve(self.expected.max(so_far + chunk.len()));
                }
                self.rest
                    .extend_from_slice(first.as_deref().unwrap_or_default());
                self.rest.extend_from_slice(&chunk);
            }
        }
        Ok(())
    }

    fn finish(self) -> Bytes {
        self.first.unwrap_or_else(|| self.rest.freeze())
    }
}

/// The body as UTF-8 where it is text: the declared charset is undone, a byte order mark is taken off. A body that is
/// not what it says stays as it is.
pub(super) fn to_utf8(
    body: Bytes,
    content_type: Option<&str>,
    limit: usize,
) -> Result<Bytes, BodyError> {
    let (encoding, mark) = match Encoding::for_bom(&body) {
        Some((encoding, mark)) if encoding == UTF_8 => (encoding, mark),
        Some((encoding, _)) if content_type.is_none_or(is_text) => (encoding, 0),
        _ => (content_type.and_then(charset).unwrap_or(UTF_8), 0),
    };
    if encoding == UTF_8 {
        let body = body.slice(mark..);
        return match String::from_utf8_lossy(&body) {
            // JSON is UTF-8. One name that was cut within a character must not stop a stream.
            Cow::Owned(mended) if content_type.is_some_and(is_json) => {
                if mended.len() > limit {
                    return Err(BodyError::TooLarge);
                }
                Ok(Bytes::from(mended))
            }
            _ => Ok(body),
        };
    }
    let (text, damaged) = encoding.decode_with_bom_removal(&body);
    if damaged {
        return Ok(body);
    }
    if text.len() > limit {
        return Err(BodyError::TooLarge);
    }
    match text {
        // Plain ASCII: the same bytes.
        Cow::Borrowed(text) if text.len() == body.len() => Ok(body),
        text => Ok(Bytes::from(text.into_owned())),
    }
}

/// The charset that a content type names, if it is a known one.
fn charset(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("charset") {
            return None;
        }
        Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes())
    })
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim_end().to_ascii_lowercase().ends_with("json")
}

fn is_text(content_type: &str) -> bool {
    let kind = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    kind.trim_start().starts_with("text/")
        || ["json", "xml", "csv", "javascript"]
            .iter()
            .any(|word| kind.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    const LIMIT: usize = 1 << 20;

    fn read(encoding: &str, body: &[u8], piece: usize, limit: usize) -> Result<Bytes, BodyError> {
        let mut collector = Collector::new(Some(encoding), None, limit)?;
        for chunk in body.chunks(piece.max(1)) {
            collector.push(Bytes::copy_from_slice(chunk))?;
        }
        collector.finish()
    }

    fn packed(encoding: &str, text: &[u8]) -> Vec<u8> {
        match encoding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "deflate" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "raw" => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            _ => text.to_vec(),
        }
    }

    const TEXT: &[u8] = b"[{\"id\":1,\"name\":\"one\"},{\"id\":2,\"name\":\"two\"}]";

    #[test]
    fn every_encoding_is_read_whatever_the_pieces() {
        for (said, made) in [
            ("identity", "identity"),
            ("gzip", "gzip"),
            ("x-gzip", "gzip"),
            ("deflate", "deflate"),
            ("deflate", "raw"),
            ("GZIP", "gzip"),
        ] {
            for piece in [1, 2, 7, 1000] {
                assert_eq!(
                    read(said, &packed(made, TEXT), piece, LIMIT).as_deref(),
                    Ok(TEXT),
                    "{said} {made} {piece}"
                );
            }
        }
    }

    #[test]
    fn case_111_a_compressed_body_cut_anywhere_is_broken() {
        for (said, made) in [("gzip", "gzip"), ("deflate", "deflate"), ("deflate", "raw")] {
            let whole = packed(made, TEXT);
            for end in 1..whole.len() {
                let cut = read(said, &whole[..end], 1000, LIMIT);
                assert!(
                    matches!(cut, Err(BodyError::Broken(_))),
                    "{made} cut at {end} of {}: {cut:?}",
                    whole.len()
                );
            }
        }
    }

    #[test]
    fn a_damaged_gzip_is_broken() {
        let mut whole = packed("gzip", TEXT);
        let at = whole.len() - 6;
        whole[at] ^= 1;
        assert!(matches!(
            read("gzip", &whole, 1000, LIMIT),
            Err(BodyError::Broken(_))
        ));
        assert!(matches!(
            read("gzip", TEXT, 1000, LIMIT),
            Err(BodyError::Broken(_))
        ));
        assert!(matches!(
            read("br", TEXT, 1000, LIMIT),
            Err(BodyError::Broken(_))
        ));
    }

    #[test]
    fn gzip_in_several_members_is_one_body() {
        let mut two = packed("gzip", b"[1,");
        two.extend(packed("gzip", b"2]"));
        assert_eq!(read("gzip", &two, 5, LIMIT).as_deref(), Ok(&b"[1,2]"[..]));
    }

    #[test]
    fn case_153_a_bomb_ends_at_the_cap() {
        let bomb = packed("gzip", &vec![b' '; 8 << 20]);
        assert!(bomb.len() < 64 << 10);
        assert_eq!(read("gzip", &bomb, 4096, LIMIT), Err(BodyError::TooLarge));
        assert_eq!(
            read("identity", &[b' '; 11], 3, 10),
            Err(BodyError::TooLarge)
        );
        assert_eq!(
            read("identity", &[b' '; 10], 3, 10).map(|body| body.len()),
            Ok(10)
        );
        assert!(matches!(
            Collector::new(None, Some(5 << 30), LIMIT),
            Err(BodyError::TooLarge)
        ));
    }

    #[test]
    fn a_body_in_one_piece_is_not_copied() {
        let chunk = Bytes::from(TEXT.to_vec());
        let mut collector = Collector::new(None, Some(TEXT.len() as u64), LIMIT).unwrap();
        collector.push(chunk.clone()).unwrap();
        let body = to_utf8(
            collector.finish().unwrap(),
            Some("application/json; charset=utf-8"),
            LIMIT,
        )
        .unwrap();
        assert_eq!(body.as_ptr(), chunk.as_ptr());
    }

    #[test]
    fn case_113_a_byte_order_mark_is_taken_off() {
        let read =
            |body: &'static [u8], kind| to_utf8(Bytes::from_static(body), kind, LIMIT).unwrap();
        assert_eq!(
            read(b"\xef\xbb\xbf[{\"id\":1}]", Some("application/json")),
            &b"[{\"id\":1}]"[..]
        );
        assert_eq!(
            read(
                b"\xef\xbb\xbf{\"id\":1}\n{\"id\":2}",
                Some("application/x-ndjson")
            ),
            &b"{\"id\":1}\n{\"id\":2}"[..]
        );
        assert_eq!(
            read(b"\xff\xfe[\0]\0", Some("application/json")),
            &b"[]"[..]
        );
    }

    #[test]
    fn a_byte_that_is_no_text_spoils_one_character_of_json() {
        let read = |body: &'static [u8], kind| to_utf8(Bytes::from_static(body), Some(kind), LIMIT);
        for kind in [
            "application/json",
            "application/vnd.acme+json; charset=utf-8",
        ] {
            assert_eq!(
                read(b"[\"caf\xe9\"]", kind).unwrap(),
                "[\"caf\u{fffd}\"]".as_bytes()
            );
        }
        // Made longer by mending, and too long then.
        let long = Bytes::from(vec![0xff; LIMIT]);
        assert!(to_utf8(long, Some("application/json"), LIMIT).is_err());
    }

    #[test]
    fn the_declared_charset_is_undone() {
        let read = |body: &'static [u8], kind| {
            to_utf8(Bytes::from_static(body), Some(kind), LIMIT).unwrap()
        };
        assert_eq!(
            read(b"caf\xe9", "text/plain; charset=ISO-8859-1"),
            "café".as_bytes()
        );
        assert_eq!(
            read(
                b"\x93\xfa\x96\x7b",
                "application/json; charset=\"Shift_JIS\""
            ),
            "日本".as_bytes()
        );
        // Not what it says, or nothing said: left as it is.
        assert_eq!(
            read(b"caf\xe9", "text/plain; charset=utf-8"),
            &b"caf\xe9"[..]
        );
        assert_eq!(
            read(b"caf\xe9", "text/plain; charset=nonsense"),
            &b"caf\xe9"[..]
        );
        assert_eq!(read(b"\x81", "text/plain; charset=Shift_JIS"), &b"\x81"[..]);
        assert_eq!(
            read(b"\xff\xfe\x00\x01", "image/png"),
            &b"\xff\xfe\x00\x01"[..]
        );
    }

    proptest! {
        #[test]
        fn what_was_packed_is_read_back(body in proptest::collection::vec(any::<u8>(), 1..2000), piece in 1..300_usize) {
            for (said, made) in [("gzip", "gzip"), ("deflate", "deflate"), ("identity", "identity")] {
                prop_assert_eq!(read(said, &packed(made, &body), piece, LIMIT).unwrap(), &body[..]);
            }
        }

        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200), piece in 1..50_usize, kind in ".{0,30}") {
            for said in ["gzip", "deflate"] {
                let _ = read(said, &body, piece, 1000);
            }
            let _ = to_utf8(Bytes::from(body), Some(&kind), 1000);
        }
    }
}
