//! Encryption at rest: what is stored of a credential can be read with the key alone.
//!
//! ChaCha20-Poly1305 with a random nonce for each sealing; the credential's name is part of what is vouched for, so that
//! one credential's state can't be put in another's place. The key is 32 random bytes in a file of its own, made at the
//! first sealing. It is never made anew where something sealed is to be opened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::config::reference::others_may_read;

/// The first byte of what is sealed: how.
const FORM: u8 = 1;
const KEY: usize = 32;

/// Where the key is.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// 64 hexadecimal digits in a file that its owner alone may read; made when it is first needed.
    File(PathBuf),
    /// The key itself, for hosts without a data directory.
    Given([u8; KEY]),
}

/// Why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key's file.
    #[error("key file {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may read it.
    #[error("key file {path} can be read by other users of this machine: do this: chmod 600 {path}", path = .0.display())]
    Open(PathBuf),
    /// It holds something else.
    #[error("key file {} holds no key: it must be 64 hexadecimal digits, as `openssl rand -hex 32` prints them", .0.display())]
    NoKey(PathBuf),
    /// It does not fit.
    #[error("what is stored was sealed with another key, or is damaged")]
    WrongKey,
    /// The system gave no random bytes.
    #[error("this machine gives no random bytes")]
    NoRandom,
}

/// Seals and opens.
pub(super) struct Vault {
    source: KeySource,
    key: Mutex<Option<[u8; KEY]>>,
}

impl Vault {
    pub(super) fn new(source: KeySource) -> Vault {
        Vault {
            source,
            key: Mutex::new(None),
        }
    }

    pub(super) fn seal(&self, name: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.key(true)?;
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut sealed = plain.to_vec();
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(name.as_bytes()),
            &mut sealed,
        )
        .map_err(|_| SealError::WrongKey)?;
        let mut whole = Vec::with_capacity(1 + NONCE_LEN + sealed.len());
        whole.push(FORM);
        whole.extend_from_slice(&nonce);
        whole.extend_from_slice(&sealed);
        Ok(whole)
    }

    pub(super) fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.key(false)?;
        let (FORM, rest) = sealed
            .split_first()
            .map_or((0, &[][..]), |(form, rest)| (*form, rest))
        else {
            return Err(SealError::WrongKey);
        };
        let (nonce, rest) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(SealError::WrongKey)?;
        let mut text = rest.to_vec();
        let plain = key
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(name.as_bytes()),
                &mut text,
            )
            .map_err(|_| SealError::WrongKey)?;
        Ok(plain.to_vec())
    }

    fn key(&self, make: bool) -> Result<LessSafeKey, SealError> {
        let mut known = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match (*known, &self.source) {
            (Some(bytes), _) => bytes,
            (None, KeySource::Given(bytes)) => *bytes,
            (None, KeySource::File(path)) => {
                if make {
                    make_once(path)?;
                }
                read(path)?
            }
        };
        *known = Some(bytes);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| SealError::WrongKey)?;
        Ok(LessSafeKey::new(key))
    }
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| SealError::NoRandom)?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<[u8; KEY], SealError> {
    let text = fs::read_to_string(path).map_err(|source| SealError::Io {
        path: path.to_owned(),
        source,
    })?;
    if others_may_read(path) {
        return Err(SealError::Open(path.to_owned()));
    }
    from_hex(text.trim()).ok_or_else(|| SealError::NoKey(path.to_owned()))
}

/// Makes the key's file where there is none: whole or not at all, also when two processes do so at once.
fn make_once(path: &Path) -> Result<(), SealError> {
    if path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let bytes: [u8; KEY] = random()?;
    let failed = |source| SealError::Io {
        path: path.to_owned(),
        source,
    };
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(failed)?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", to_hex(&random::<8>()?)));
    let beside = PathBuf::from(beside);
    let made = write_private(&beside, &to_hex(&bytes)).and_then(|()| {
        // Unlike a rename, this puts nothing in the place of a file that another process has just made.
        match fs::hard_link(&beside, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => File::open(directory)?.sync_all(),
        }
    });
    // It has its other name now, or is of no use.
    let _ = fs::remove_file(&beside);
    made.map_err(failed)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; KEY]> {
    let mut bytes = [0; KEY];
    let digits: Vec<u32> = text
        .chars()
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    if digits.len() != 2 * KEY {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_its_own_name_and_key_alone() {
        let vault = Vault::new(KeySource::Given([7; KEY]));
        let sealed = vault.seal("shop", b"tok_XYZ").unwrap();
        assert!(!sealed.windows(7).any(|part| part == b"tok_XYZ"));
        assert_ne!(sealed, vault.seal("shop", b"tok_XYZ").unwrap());
        assert_eq!(vault.open("shop", &sealed).unwrap(), b"tok_XYZ");
        let refused = |vault: &Vault, name, sealed: &[u8]| {
            assert!(matches!(vault.open(name, sealed), Err(SealError::WrongKey)));
        };
        refused(&vault, "other", &sealed);
        refused(&Vault::new(KeySource::Given([8; KEY])), "shop", &sealed);
        for length in 0..sealed.len() {
            refused(&vault, "shop", &sealed[..length]);
        }
        let mut bent = sealed;
        bent[20] ^= 1;
        refused(&vault, "shop", &bent);
    }

    #[test]
    fn the_key_is_made_at_the_first_sealing_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/credentials.key");
        let vault = || Vault::new(KeySource::File(path.clone()));
        assert!(matches!(
            vault().open("shop", &[FORM; 40]),
            Err(SealError::Io { .. })
        ));
        assert!(!path.exists(), "nothing sealed can be opened by a new key");
        let sealed = vault().seal("shop", b"tok_XYZ").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(vault().open("shop", &sealed).unwrap(), b"tok_XYZ");
        let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "nothing else is left there");
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_none_is_refused_with_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials.key");
        let told = || {
            let vault = Vault::new(KeySource::File(path.clone()));
            vault.seal("shop", b"x").unwrap_err().to_string()
        };
        fs::write(&path, "00".repeat(KEY)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(told().contains("chmod 600"), "{}", told());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "correct horse battery staple").unwrap();
        assert!(told().contains("openssl rand -hex 32"), "{}", told());
    }
}
