//! Bodies: whole ones in as many pieces as they are kept in, ones that break off, and ones without an end.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// How much of an endless body is handed over at once.
const PIECE: usize = 64 * 1024;
static SPACES: [u8; PIECE] = [b' '; PIECE];

/// The body of an answer.
pub(crate) struct SimBody {
    pieces: VecDeque<Bytes>,
    /// What is announced and not yet handed over.
    left: u64,
    /// What becomes of the rest when the pieces are used up.
    rest: Rest,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// There is none.
    Nothing,
    /// The connection ends, once what was handed over is on its way.
    Flush,
    /// The connection ends.
    Break,
    /// Spaces.
    Spaces,
}

impl SimBody {
    pub(crate) fn whole(pieces: impl Into<VecDeque<Bytes>>) -> Self {
        let pieces = pieces.into();
        SimBody {
            left: pieces.iter().map(|piece| piece.len() as u64).sum(),
            pieces,
            rest: Rest::Nothing,
        }
    }

    /// Announces all of `body` and breaks off after `sent` bytes.
    pub(crate) fn broken(body: &Bytes, sent: usize) -> Self {
        let sent = body.slice(..sent.min(body.len()));
        SimBody {
            pieces: VecDeque::from([sent]),
            left: body.len() as u64 + 1,
            rest: Rest::Flush,
        }
    }

    /// Goes on with spaces up to this length.
    pub(crate) fn huge(start: Bytes, bytes: u64) -> Self {
        SimBody {
            left: bytes.max(start.len() as u64),
            pieces: VecDeque::from([start]),
            rest: Rest::Spaces,
        }
    }
}

impl Body for SimBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = match self.pieces.pop_front() {
            Some(piece) => piece,
            None if self.left == 0 || self.rest == Rest::Nothing => return Poll::Ready(None),
            None if self.rest == Rest::Flush => {
                self.rest = Rest::Break;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            None if self.rest == Rest::Break => {
                return Poll::Ready(Some(Err(io::Error::other("the vendor broke off"))));
            }
            None => {
                let length = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
                Bytes::from_static(SPACES.get(..length).unwrap_or_default())
            }
        };
        self.left = self.left.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
