//! Secrets by reference: an environment variable, a file, a command's output, a systemd credential.
//!
//! Promises: a command is run as it is written, never by a shell, and not longer than [`PATIENCE`]; no text here holds
//! what was read. Refuses: a file that other users may read, and a secret that is empty or that no header can carry.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use toml::de::DeValue;

use super::reader::{Entry, Report};
use super::secret::{Secret, SecretSource};

const HELP: &str = "allowed: { env = \"NAME\" }, { file = \"path\" }, { command = [\"program\", \"argument\"] } or \
                    { systemd = \"name\" }; example: { env = \"SHOP_TOKEN\" }";

const READABLE: &str = "allowed: a readable text file that holds the secret alone";

/// How long a command may take; some ask a person to unlock something.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a command may go on after it has closed its output, in steps of [`STEP`].
const STEPS: u32 = 100;
const STEP: Duration = Duration::from_millis(10);
/// No secret is longer, in bytes.
const LONGEST: u64 = 64 << 10;

/// A user's name or a client's id is no secret by itself, so it may be written plainly.
pub(super) fn plain_or_secret(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    match at.value.as_str() {
        Some(plain) => clean(at, plain, SecretSource::Inline, report),
        None => secret(at, report),
    }
}

/// Resolves a reference to a secret.
pub(super) fn secret(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    if let DeValue::String(inline) = at.value {
        report.warn(
            at,
            "is a secret written into the configuration",
            "better: { env = \"NAME\" } or { file = \"path\" }",
        );
        return clean(at, inline, SecretSource::Inline, report);
    }
    let mut section = at.section(report, HELP)?;
    let env = section.get(report, "env");
    let file = section.get(report, "file");
    let command = section.get(report, "command");
    let systemd = section.get(report, "systemd");
    section.finish(report);
    match (env, file, command, systemd) {
        (Some(env), None, None, None) => from_env(&env, report),
        (None, Some(file), None, None) => from_file(&file, report),
        (None, None, Some(command), None) => from_command(&command, report),
        (None, None, None, Some(systemd)) => from_systemd(&systemd, report),
        _ => {
            report.complain(at, "needs one of env, file, command and systemd", HELP);
            None
        }
    }
}

fn from_env(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let name = at.filled(report, HELP)?;
    let source = SecretSource::Env(name.into());
    if let Some(stand_in) = report.stand_in {
        return Some(Secret::from_source(stand_in, source));
    }
    match (report.env)(name) {
        Some(value) => clean(at, &value, source, report),
        None => {
            report.complain(
                at,
                &format!("{source} is not set"),
                &format!("set it before the start, for example: export {name}=..."),
            );
            None
        }
    }
}

fn from_file(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let written = at.filled(report, HELP)?;
    let path = report.path(written);
    let shown: Arc<str> = path.display().to_string().into();
    let source = SecretSource::File(Arc::clone(&shown));
    if let Some(stand_in) = report.stand_in {
        return Some(Secret::from_source(stand_in, source));
    }
    match file_secret(&path) {
        Ok(secret) => Some(secret),
        Err(Unfit { problem, help }) => {
            report.complain(at, &problem, &help);
            None
        }
    }
}

/// A secret that can't be used: what is wrong, and what to do.
#[derive(Debug)]
pub(super) struct Unfit {
    problem: String,
    help: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.problem, self.help)
    }
}

/// What a file holds, if it is for its owner alone and holds one secret.
pub(super) fn file_secret(path: &Path) -> Result<Secret, Unfit> {
    let shown: Arc<str> = path.display().to_string().into();
    let source = SecretSource::File(Arc::clone(&shown));
    if others_may_read(path) {
        return Err(Unfit {
            problem: format!("{source} can be read by other users of this machine"),
            help: format!("do this: chmod 600 {shown}"),
        });
    }
    let value = fs::read_to_string(path).map_err(|error| Unfit {
        problem: format!("{source} cannot be read: {error}"),
        help: READABLE.to_owned(),
    })?;
    cleaned(&value, source)
}

fn read_text(
    at: &Entry<'_>,
    path: &Path,
    source: &SecretSource,
    report: &mut Report<'_>,
) -> Option<String> {
    fs::read_to_string(path)
        .map_err(|error| {
            report.complain(at, &format!("{source} cannot be read: {error}"), READABLE);
        })
        .ok()
}

/// Others than the file's owner may read it. False where that can't be told.
#[cfg(unix)]
pub(crate) fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
pub(crate) fn others_may_read(_: &Path) -> bool {
    false
}

/// systemd hands a service its credentials in a directory that only the service can read.
fn from_systemd(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let help = "allowed: the name of a credential of the unit (LoadCredential=name:path)";
    let name = at.filled(report, help)?;
    if name.contains('/') || name == "." || name == ".." {
        report.complain(at, "is not the name of a credential", help);
        return None;
    }
    let source = SecretSource::Systemd(name.into());
    if let Some(stand_in) = report.stand_in {
        return Some(Secret::from_source(stand_in, source));
    }
    let Some(directory) = (report.env)("CREDENTIALS_DIRECTORY") else {
        report.complain(
            at,
            "is a systemd credential, and $CREDENTIALS_DIRECTORY is not set",
            "start weir as a systemd service with LoadCredential= or SetCredential=",
        );
        return None;
    };
    let value = read_text(at, &Path::new(&directory).join(name), &source, report)?;
    clean(at, &value, source, report)
}

/// The output of a program, without the line end.
fn from_command(at: &Entry<'_>, report: &mut Report<'_>) -> Option<Secret> {
    let help = "allowed: a program and its arguments, each a string of its own; example: { command = [\"pass\", \"show\", \"shop\"] }";
    let words = at.texts(report, help)?;
    let Some((program, arguments)) = words.split_first().filter(|(first, _)| !first.is_empty())
    else {
        report.complain(at, "names no program", help);
        return None;
    };
    let source = SecretSource::Command((*program).into());
    if let Some(stand_in) = report.stand_in {
        return Some(Secret::from_source(stand_in, source));
    }
    // A path is read from the configuration's folder, like every other; a bare name is looked up.
    let mut command = if program.contains('/') {
        Command::new(report.path(program))
    } else {
        Command::new(program)
    };
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    match output(command) {
        Ok(value) => clean(at, &value, source, report),
        Err(problem) => {
            report.complain(
                at,
                &format!("the secret from {source} cannot be had: {problem}"),
                "run it by hand: it must print the secret, and nothing else, and end with 0",
            );
            None
        }
    }
}

fn output(mut command: Command) -> Result<String, String> {
    let mut child = command
        .spawn()
        .map_err(|error| format!("it does not start: {error}"))?;
    let read = heard(&mut child);
    let status = match &read {
        Ok(_) => ended(&mut child),
        Err(_) => None,
    };
    if status.is_none() {
        // It may have ended by itself at this very moment.
        let _ = child.kill();
        let _ = child.wait();
    }
    let bytes = read?;
    match status {
        Some(status) if status.success() => {}
        Some(status) => return Err(format!("it ended with {status}")),
        None => return Err("it does not end".to_owned()),
    }
    if bytes.len() as u64 > LONGEST {
        return Err("its output is too long for a secret".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "its output is not UTF-8".to_owned())
}

/// All that it says, if it says it in time.
fn heard(child: &mut Child) -> Result<Vec<u8>, String> {
    let pipe = child.stdout.take().ok_or("it has no output")?;
    let (sender, receiver) = mpsc::channel();
    // Detached: a child of the child may hold the pipe for ever.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.take(LONGEST + 1).read_to_end(&mut bytes);
        // Nobody listens any more when it took too long.
        let _ = sender.send(read.map(|_| bytes));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it was not done within {} s", PATIENCE.as_secs())),
    }
}

fn ended(child: &mut Child) -> Option<std::process::ExitStatus> {
    for _ in 0..STEPS {
        match child.try_wait() {
            Ok(None) => thread::sleep(STEP),
            Ok(Some(status)) => return Some(status),
            Err(_) => return None,
        }
    }
    None
}

/// Without the line end that files and shells leave behind; a secret that is empty or that no header can carry is
/// refused.
fn clean(
    at: &Entry<'_>,
    value: &str,
    source: SecretSource,
    report: &mut Report<'_>,
) -> Option<Secret> {
    match cleaned(value, source) {
        Ok(secret) => Some(secret),
        Err(Unfit { problem, help }) => {
            report.complain(at, &problem, &help);
            None
        }
    }
}

fn cleaned(value: &str, source: SecretSource) -> Result<Secret, Unfit> {
    let value = value.trim_matches(['\r', '\n', ' ', '\t']);
    if value.is_empty() {
        return Err(Unfit {
            problem: format!("the secret from {source} is empty"),
            help: HELP.to_owned(),
        });
    }
    if value.chars().any(char::is_control) {
        return Err(Unfit {
            problem: format!(
                "the secret from {source} holds a line break or another control character"
            ),
            help: "allowed: one line".to_owned(),
        });
    }
    Ok(Secret::from_source(value, source))
}
