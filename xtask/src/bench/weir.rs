//! The measured weir: one configuration with a data directory and an output of its own.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use weir_tests::demo::bulk_config;

use super::measure::{Cost, measure};
use super::server::outline;
use crate::product::Product;

/// Where a host keeps what it has compiled, in its data directory.
const CACHE: &str = "compiled";

pub(super) struct Weir<'a> {
    product: &'a Product,
    dir: PathBuf,
}

impl<'a> Weir<'a> {
    /// Sets one up that knows nothing yet, in a new directory.
    pub(super) fn new(
        product: &'a Product,
        dir: PathBuf,
        origin: &str,
        page_size: u32,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(dir.join("data"))?;
        let config = format!(
            "[host]\ndata = \"data\"\nconnectors = {:?}\n\n\
             [sink.file]\ntype = \"file\"\npath = \"out.ndjson\"\n\n{}",
            product.connectors.display().to_string(),
            bulk_config(origin, &outline(), page_size)
        );
        fs::write(dir.join("weir.toml"), config)?;
        Ok(Weir { product, dir })
    }

    /// The same, with the connectors compiled already: that is done once for all runs, not once a run.
    pub(super) fn warm(
        product: &'a Product,
        dir: PathBuf,
        origin: &str,
        page_size: u32,
        like: &Weir<'_>,
    ) -> anyhow::Result<Self> {
        let weir = Weir::new(product, dir, origin, page_size)?;
        let (from, to) = (like.cache(), weir.cache());
        // Nobody else may write what is run as it is; weir insists on that.
        DirBuilder::new().mode(0o700).create(&to)?;
        let compiled = fs::read_dir(&from).with_context(|| from.display().to_string())?;
        for file in compiled {
            let file = file?;
            fs::copy(file.path(), to.join(file.file_name()))?;
        }
        Ok(weir)
    }

    fn cache(&self) -> PathBuf {
        self.dir.join("data").join(CACHE)
    }

    /// `weir sync`, the whole process.
    pub(super) fn sync(&self) -> anyhow::Result<Cost> {
        let log = self.dir.join("weir.log");
        let mut command = Command::new(&self.product.weir);
        command
            .args(["sync", "--config"])
            .arg(self.dir.join("weir.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        measure(command).with_context(|| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            format!("weir sync failed:\n{said}")
        })
    }

    /// Where the records are delivered.
    pub(super) fn output(&self) -> PathBuf {
        self.dir.join("out.ndjson")
    }

    /// Where everything of it is.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}
