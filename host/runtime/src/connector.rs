//! A loaded connector and the calls that it answers.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower,
};
use wasmtime::{Engine, Store};

use crate::contract::{
    Descriptor, Fault, Page, Plugin, PluginIndices, Request, Response, Task, check_descriptor,
    check_page, check_partitions, check_request, tame_fault,
};
use crate::error::{CallError, CallErrorKind, Function, classify};
use crate::guest::{self, Gate, Guest};
use crate::kept::{Instance, Kept};
use crate::limits::{Limits, MESSAGE};
use crate::load::{Refusal, check_functions};
use crate::text::tame;

/// The SHA-256 of a connector's file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<Sha256> for Digest {
    fn from(hash: Sha256) -> Self {
        Digest(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a connector's calls have used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Calls made.
    pub calls: u64,
    /// Calls that gave no result.
    pub failed: u64,
    /// Their time, all together.
    pub time: Duration,
    /// The most memory that one of them held, in bytes.
    pub peak_memory: u64,
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
    peak_memory: AtomicU64,
}

/// A connector that can be called, from any thread and by several at once.
///
/// Every call gets a fresh instance, which is gone afterwards: nothing leaks from one call into another. (A simulation
/// [keeps](crate::RuntimeConfig::kept) them.) Calls compute and never wait; [`Workers`](crate::Workers) are the place for
/// them. Dropping the last reference frees the compiled code.
pub struct Connector {
    name: Arc<str>,
    digest: Digest,
    version: &'static str,
    descriptor: Descriptor,
    engine: Engine,
    pre: InstancePre<Guest>,
    exports: Exports,
    /// None: every call gets an instance of its own.
    kept: Option<Kept>,
    limits: Limits,
    gate: Arc<Gate>,
    counters: Counters,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("name", &self.name)
            .field("version", &self.descriptor.version)
            .field("contract", &self.version)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Connector {
    /// Links a compiled component and asks it what it is.
    pub(crate) fn new(
        component: &Component,
        version: &'static str,
        digest: Digest,
        label: &Path,
        limits: Limits,
        kept: bool,
    ) -> Result<Self, Refusal> {
        let wrong_types = |error: wasmtime::Error| Refusal::WrongTypes {
            version,
            detail: tame(&format!("{error:#}"), MESSAGE),
        };
        let engine = component.engine().clone();
        let exported = functions(component, version);
        check_functions(Some(version), exported.iter().map(String::as_str))?;
        let mut linker = guest::linker(&engine, version).map_err(wrong_types)?;
        guest::link_inert_wasi(&mut linker, component).map_err(wrong_types)?;
        let pre = linker.instantiate_pre(component).map_err(wrong_types)?;
        let indices = PluginIndices::new(&pre).map_err(wrong_types)?;
        let exports = Exports::of(component, version)
            .ok_or_else(|| wrong_types(wasmtime::Error::msg("a function is missing")))?;
        let file_name = label.file_stem().unwrap_or(label.as_os_str());
        let mut connector = Connector {
            // Until it has told its own.
            name: tame(&file_name.to_string_lossy(), 80).into(),
            digest,
            version,
            descriptor: unknown(),
            engine,
            pre,
            exports,
            kept: None,
            limits,
            gate: Arc::new(Gate::new(limits.log)),
            counters: Counters::default(),
        };
        connector
            .check_types(&indices)
            .map_err(|error| match error {
                Unusable::Types(error) => wrong_types(error),
                Unusable::Start(kind) => Refusal::Describe(kind),
            })?;
        let described = connector.call_describe(None).map_err(Refusal::Describe)?;
        let descriptor = described
            .map_err(|fault| Refusal::DescribeFault(format!("{} {}", fault.code, fault.message)))?;
        check_descriptor(&descriptor, false).map_err(Refusal::InvalidDescriptor)?;
        connector.name = descriptor.name.as_str().into();
        connector.descriptor = descriptor;
        connector.kept = kept.then(|| Kept::new(indices));
        Ok(connector)
    }

    /// From now on these are its limits.
    pub(crate) fn limit(&mut self, limits: Limits) {
        if limits.log != self.limits.log {
            self.gate = Arc::new(Gate::new(limits.log));
        }
        self.limits = limits;
    }

    /// Its name, as configurations name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The SHA-256 of its file.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// What it says of itself without a configuration.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The version of the contract that it is built for.
    pub fn contract_version(&self) -> &'static str {
        self.version
    }

    /// What each of its calls may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What its calls have used so far.
    pub fn stats(&self) -> CallStats {
        CallStats {
            calls: self.counters.calls.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            time: Duration::from_micros(self.counters.micros.load(Ordering::Relaxed)),
            peak_memory: self.counters.peak_memory.load(Ordering::Relaxed),
        }
    }

    /// What it is for a connection with this configuration (JSON, already checked against its schema).
    ///
    /// # Errors
    ///
    /// The outer error: it gave no usable answer. The inner one: it refuses the configuration.
    pub fn describe_for(&self, config: &str) -> Result<Result<Descriptor, Fault>, CallError> {
        let outcome = self.call_describe(Some(config)).and_then(|described| {
            if let Ok(descriptor) = &described {
                check_descriptor(descriptor, true).map_err(CallErrorKind::Invalid)?;
                if descriptor.name != *self.name {
                    return Err(CallErrorKind::Invalid(format!(
                        "it calls itself {:?} and without a configuration {:?}",
                        descriptor.name, self.name
                    )));
                }
            }
            Ok(described)
        });
        self.named(Function::Describe, outcome)
    }

    /// The slices of a stream that the configuration names; empty if the stream is one.
    ///
    /// # Errors
    ///
    /// The outer error: it gave no usable answer. The inner one: its own fault.
    pub fn partitions(
        &self,
        stream: &str,
        config: &str,
    ) -> Result<Result<Vec<String>, Fault>, CallError> {
        let outcome = self.call(
            Function::Partitions,
            &self.exports.partitions,
            (stream, config),
        );
        let outcome = outcome
            .and_then(|result| checked(result, |names: &Vec<String>| check_partitions(names)));
        self.named(Function::Partitions, outcome)
    }

    /// The next request of a poll; `step` is `None` for its first.
    ///
    /// # Errors
    ///
    /// The outer error: it gave no usable answer. The inner one: its own fault.
    pub fn build_request(
        &self,
        task: &Task,
        step: Option<&str>,
    ) -> Result<Result<Request, Fault>, CallError> {
        let function = Function::BuildRequest;
        let outcome = self.answer(
            function,
            || self.call(function, &self.exports.build_request, (task, step)),
            |plugin, store| {
                let connector = plugin.weir_connector_connector();
                connector.call_build_request(store, task, owned(step).as_ref())
            },
        );
        let outcome = outcome.and_then(|result| checked(result, check_request));
        self.named(Function::BuildRequest, outcome)
    }

    /// What an answer means. The body is copied once, into the connector's memory.
    ///
    /// All slices of the page lie within the answer's text and begin and end between characters.
    ///
    /// # Errors
    ///
    /// The outer error: it gave no usable answer. The inner one: what it takes the answer for.
    pub fn read_response(
        &self,
        task: &Task,
        step: Option<&str>,
        response: &Response,
    ) -> Result<Result<Page, Fault>, CallError> {
        let function = Function::ReadResponse;
        let export = &self.exports.read_response;
        let outcome = self.answer(
            function,
            || self.call(function, export, (task, step, response)),
            |plugin, store| {
                let connector = plugin.weir_connector_connector();
                connector.call_read_response(store, task, owned(step).as_ref(), response)
            },
        );
        let outcome = outcome.and_then(|result| checked(result, |page| check_page(page, response)));
        self.named(Function::ReadResponse, outcome)
    }

    fn call_describe(
        &self,
        config: Option<&str>,
    ) -> Result<Result<Descriptor, Fault>, CallErrorKind> {
        self.call(Function::Describe, &self.exports.describe, (config,))
    }

    /// One call in an instance of its own. Only the function that is called is looked up in it.
    fn call<T, P>(
        &self,
        function: Function,
        export: &ComponentExportIndex,
        params: P,
    ) -> Result<Result<T, Fault>, CallErrorKind>
    where
        P: ComponentNamedList + Lower,
        T: Lift + 'static,
    {
        let began = Instant::now();
        let mut store = self.store(function);
        let outcome = self
            .pre
            .instantiate(&mut store)
            .and_then(|instance| {
                instance.get_typed_func::<P, (Result<T, Fault>,)>(&mut store, export)
            })
            .and_then(|function| function.call(&mut store, params))
            .map(|(result,)| result);
        self.ended(function, began, &mut store, outcome)
    }

    /// One call, in a kept instance if there are such.
    fn answer<T: PartialEq>(
        &self,
        function: Function,
        fresh: impl FnOnce() -> Result<Result<T, Fault>, CallErrorKind>,
        again: impl FnOnce(&Plugin, &mut Store<Guest>) -> wasmtime::Result<Result<T, Fault>>,
    ) -> Result<Result<T, Fault>, CallErrorKind> {
        let Some(kept) = &self.kept else {
            return fresh();
        };
        let began = Instant::now();
        let mut instance = match kept.take() {
            Some(instance) => instance,
            None => kept
                .fresh(self.store(function), &self.pre)
                .map_err(|(mut store, error)| {
                    let said = store.data_mut().log.last_words();
                    self.sort(function, &error, said)
                })?,
        };
        let Instance { store, plugin, .. } = &mut instance;
        guest::again(store, self.time(function), function);
        let outcome = again(plugin, store);
        let result = self.ended(function, began, store, outcome)?;
        kept.put_back(instance);
        if kept.is_to_compare() && fresh()? != result {
            return Err(CallErrorKind::Invalid(
                "it answered differently from a fresh instance, so it remembers something from one call to the next: \
                 whatever an answer depends on must be in the task, the step or the cursor"
                    .to_owned(),
            ));
        }
        Ok(result)
    }

    /// Counts a call, and sorts what came of it.
    fn ended<T>(
        &self,
        function: Function,
        began: Instant,
        store: &mut Store<Guest>,
        outcome: wasmtime::Result<Result<T, Fault>>,
    ) -> Result<Result<T, Fault>, CallErrorKind> {
        let counters = &self.counters;
        counters.calls.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        counters.micros.fetch_add(micros, Ordering::Relaxed);
        let peak = u64::try_from(store.data().meter.peak()).unwrap_or(u64::MAX);
        counters.peak_memory.fetch_max(peak, Ordering::Relaxed);
        match outcome {
            Ok(result) => Ok(result.map_err(tame_fault)),
            Err(error) => {
                counters.failed.fetch_add(1, Ordering::Relaxed);
                Err(self.sort(function, &error, store.data_mut().log.last_words()))
            }
        }
    }

    fn store(&self, function: Function) -> Store<Guest> {
        guest::store(
            &self.engine,
            &self.limits,
            self.time(function),
            &self.name,
            function,
            &self.gate,
        )
    }

    fn time(&self, function: Function) -> Duration {
        match function {
            Function::Describe => self.limits.describe,
            _ => self.limits.call,
        }
    }

    fn sort(
        &self,
        function: Function,
        error: &wasmtime::Error,
        said: Option<String>,
    ) -> CallErrorKind {
        let allowed = u64::try_from(self.time(function).as_millis()).unwrap_or(u64::MAX);
        classify(error, allowed, self.limits.returned, said)
    }

    /// Are the functions behind the names those of the contract?
    fn check_types(&self, indices: &PluginIndices) -> Result<(), Unusable> {
        let mut store = self.store(Function::Describe);
        let instance = self.pre.instantiate(&mut store).map_err(|error| {
            let said = store.data_mut().log.last_words();
            Unusable::Start(self.sort(Function::Describe, &error, said))
        })?;
        indices
            .load(&mut store, &instance)
            .map(|_| ())
            .map_err(Unusable::Types)
    }

    fn named<T>(
        &self,
        function: Function,
        outcome: Result<T, CallErrorKind>,
    ) -> Result<T, CallError> {
        outcome.map_err(|kind| CallError {
            connector: self.name.clone(),
            function,
            kind,
        })
    }
}

/// The names of what a component's connector interface holds.
fn functions(component: &Component, version: &str) -> Vec<String> {
    let engine = component.engine();
    let interface = format!("weir:connector/connector@{version}");
    let about = component.component_type();
    let export = about.get_export(engine, &interface);
    match export.map(|export| export.ty) {
        Some(ComponentItem::ComponentInstance(instance)) => instance
            .exports(engine)
            .map(|(name, _)| name.to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// Where the contract's functions are in any instance of a component.
struct Exports {
    describe: ComponentExportIndex,
    partitions: ComponentExportIndex,
    build_request: ComponentExportIndex,
    read_response: ComponentExportIndex,
}

impl Exports {
    fn of(component: &Component, version: &str) -> Option<Self> {
        let interface = format!("weir:connector/connector@{version}");
        let interface = component.get_export_index(None, interface.as_str())?;
        let function = |name: &str| component.get_export_index(Some(&interface), name);
        Some(Exports {
            describe: function("describe")?,
            partitions: function("partitions")?,
            build_request: function("build-request")?,
            read_response: function("read-response")?,
        })
    }
}

/// As the generated bindings want it.
fn owned(step: Option<&str>) -> Option<String> {
    step.map(str::to_owned)
}

enum Unusable {
    Types(wasmtime::Error),
    Start(CallErrorKind),
}

fn checked<T>(
    result: Result<T, Fault>,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<Result<T, Fault>, CallErrorKind> {
    if let Ok(value) = &result {
        check(value).map_err(CallErrorKind::Invalid)?;
    }
    Ok(result)
}

/// What is known of a connector before it has spoken.
fn unknown() -> Descriptor {
    Descriptor {
        name: String::new(),
        title: String::new(),
        version: String::new(),
        docs: None,
        config_schema: String::new(),
        origins: Vec::new(),
        streams: Vec::new(),
        pacing: crate::contract::Pacing {
            min_interval: None,
            max_interval: None,
            unpublished_limits: false,
            concurrency: None,
            backoff_cap: None,
            not_modified_is_free: false,
            documented_limits: Vec::new(),
        },
        extra: Vec::new(),
    }
}
