//! A vendor on a loopback port that answers with whatever bytes a test wants, and remembers what it was asked.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::DEADLINE;

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text; empty without one.
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// What is done with the connection; it is closed afterwards.
pub type Act = Box<dyn FnOnce(&mut TcpStream) -> io::Result<()> + Send>;

type Script = Box<dyn FnMut(&Asked) -> Act + Send>;

/// The vendor. Dropping it stops it.
pub struct Vendor {
    addr: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
    stop: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vendor {
    /// Answers as the script says.
    pub fn new(script: impl FnMut(&Asked) -> Act + Send + 'static) -> Vendor {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            asked: Mutex::default(),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let serving = shared.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.stop.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, serving.clone()) else {
                    continue;
                };
                // A client that breaks off concerns nobody else.
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Vendor {
            addr,
            shared,
            thread: Some(thread),
        }
    }

    /// Another script from now on.
    pub fn script(&self, script: impl FnMut(&Asked) -> Act + Send + 'static) {
        *lock(&self.shared.script) = Box::new(script);
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// How many requests there were whose target begins so.
    pub fn count(&self, beginning: &str) -> usize {
        let asked = lock(&self.shared.asked);
        let of_it = asked
            .iter()
            .filter(|asked| asked.target.starts_with(beginning));
        of_it.count()
    }

    /// The most requests that were being answered at once.
    pub fn most_at_once(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the listener; if it can't be reached it is gone already.
        let _ = TcpStream::connect(self.addr);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let Ok(asked) = read_request(&mut stream) else {
            return;
        };
        lock(&self.asked).push(asked.clone());
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
        let act = (lock(&self.script))(&asked);
        // A client that breaks off in the middle of an answer is what some tests are about.
        let _ = act(&mut stream);
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn read_request(stream: &mut TcpStream) -> io::Result<Asked> {
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut lines = reader.by_ref().lines();
    let first = lines
        .next()
        .unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()))?;
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => break,
        }
    }
    let mut asked = Asked {
        target,
        headers,
        body: String::new(),
    };
    let length = asked.header("content-length").unwrap_or("0").parse();
    reader
        .take(length.unwrap_or(0))
        .read_to_string(&mut asked.body)?;
    Ok(asked)
}

/// Records `{"id":1},...` up to this id, as `{"orders":[...]}`.
pub fn orders(count: usize) -> String {
    orders_with(1..=count, "")
}

/// Records with these ids and a text in each.
pub fn orders_with(ids: impl Iterator<Item = usize>, text: &str) -> String {
    let records: Vec<String> = ids
        .map(|id| format!(r#"{{"id":{id},"text":"{text}"}}"#))
        .collect();
    format!(r#"{{"orders":[{}]}}"#, records.join(","))
}

/// 200 with JSON.
pub fn json(body: impl Into<String>) -> Act {
    answer(200, &[("content-type", "application/json")], body.into())
}

/// A whole answer.
pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Act {
    let body = body.into();
    let mut bytes = head(status, headers, Some(body.len() as u64));
    bytes.extend(body);
    raw(bytes)
}

/// Exactly these bytes.
pub fn raw(bytes: impl Into<Vec<u8>>) -> Act {
    let bytes = bytes.into();
    Box::new(move |stream| stream.write_all(&bytes))
}

/// The head of an answer; without a length its body ends with the connection.
pub fn head(status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Something\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        head.push_str(&format!("content-length: {length}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// Sends these bytes, then this piece again and again until so many of them are out or the client has had enough.
pub fn flood(beginning: Vec<u8>, piece: Vec<u8>, times: usize) -> Act {
    Box::new(move |stream| {
        stream.write_all(&beginning)?;
        for _ in 0..times {
            stream.write_all(&piece)?;
        }
        Ok(())
    })
}

/// No byte, until the client goes away.
pub fn silence() -> Act {
    Box::new(|stream| {
        let mut byte = [0];
        while stream.read(&mut byte)? > 0 {}
        Ok(())
    })
}

/// A door that holds answers back until it is opened.
#[derive(Clone, Default)]
pub struct Door {
    state: Arc<(Mutex<bool>, Condvar)>,
}

impl Door {
    pub fn open(&self) {
        *lock(&self.state.0) = true;
        self.state.1.notify_all();
    }

    /// Does this when the door is open.
    pub fn behind(&self, act: Act) -> Act {
        let door = self.clone();
        Box::new(move |stream| {
            let open = lock(&door.state.0);
            let limit = Duration::from_secs(120);
            let waited = door.state.1.wait_timeout_while(open, limit, |open| !*open);
            drop(waited);
            act(stream)
        })
    }
}
