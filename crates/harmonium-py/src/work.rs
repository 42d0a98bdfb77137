//! Long work: the library runs on threads of its own with the interpreter released, while the thread that
//! called looks for signals, shows progress and runs callbacks.
//!
//! The work never waits for the interpreter, except where somebody wants to hear of every epoch and may end
//! the training: then it waits for the answer.

use crate::errors::Failure;
use crate::model::Model;
use harmonium::progress::{Listener, Work};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// Between two reports of progress.
const REPORT: Duration = Duration::from_millis(50);
/// Bytes of stack of a thread: as many as the first thread of a process usually has.
const STACK: usize = 8 << 20;
/// Pools that are kept while nobody needs them.
const KEPT: usize = 4;

/// Threads that work on one call; 0 is one for each core.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Pools without work. Calls that overlap have a pool each, so that none waits for another's work.
static IDLE: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// Threads, and the process they live in: a fork has none of them.
struct Pool {
    threads: ThreadPool,
    n: usize,
    process: u32,
}

/// Number of threads that work on one call; 0 is one for each core.
#[pyfunction]
pub(crate) fn threads() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// Says how many threads may work on one call; 0 is one for each core.
#[pyfunction]
pub(crate) fn set_threads(n: usize) -> PyResult<()> {
    if n > 4096 {
        return Err(PyValueError::new_err(format!("{n} threads: there are at most 4096")));
    }
    THREADS.store(n, Ordering::Relaxed);
    Ok(())
}

impl Pool {
    /// A pool that has nothing to do, or a new one.
    fn take() -> PyResult<Self> {
        let (n, process) = (threads(), process::id());
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.iter().any(|pool| pool.process != process) {
            // The threads of the parent are not here, so that nobody could end them.
            std::mem::take(&mut *idle).into_iter().for_each(std::mem::forget);
        }
        if let Some(place) = idle.iter().position(|pool| pool.n == n) {
            return Ok(idle.swap_remove(place));
        }
        drop(idle);
        let name = |k: usize| format!("harmonium-{k}");
        let threads = ThreadPoolBuilder::new().stack_size(STACK).num_threads(n).thread_name(name);
        let failed = |e| PyRuntimeError::new_err(format!("threads could not be started: {e}"));
        Ok(Self { threads: threads.build().map_err(failed)?, n, process })
    }

    fn give_back(self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(self);
        }
    }
}

/// What the work says to the thread that called.
enum Message {
    Progress {
        what: String,
        done: u64,
        total: u64,
        detail: String,
    },
    Note(String),
    Announcement(String),
    /// An event as JSON, and where the reason to stop is awaited.
    Event(String, SyncSender<Option<String>>),
    /// The number of an epoch that has ended, the model after it, and where the reason to stop is awaited.
    Epoch(u64, Box<harmonium::Model>, SyncSender<Option<String>>),
    Done,
}

/// The working end: a listener, and who hears of events.
pub(crate) struct Teller<'a> {
    sender: Sender<Message>,
    stop: &'a AtomicBool,
    told: Instant,
    /// Whether somebody wants to hear of every event.
    hears: bool,
}

impl Listener for Teller<'_> {
    fn at(&mut self, work: Work<'_>) {
        if self.told.elapsed() < REPORT && work.done < work.total {
            return;
        }
        self.told = Instant::now();
        let Work { what, done, total, detail } = work;
        let (what, detail) = (what.to_owned(), detail.to_owned());
        self.send(Message::Progress { what, done, total, detail });
    }

    fn note(&mut self, text: &str) {
        self.send(Message::Note(text.to_owned()));
    }

    fn announce(&mut self, text: &str) {
        self.send(Message::Announcement(text.to_owned()));
    }

    fn cancelled(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Teller<'_> {
    fn send(&self, message: Message) {
        // Nobody listens any more only where the caller has failed already.
        let _ = self.sender.send(message);
    }

    /// One who tells of epochs, for an observer of its own.
    pub(crate) fn epochs(&self) -> Epochs {
        Epochs { sender: self.sender.clone(), wanted: self.hears }
    }

    /// One who tells of events, for a closure of its own.
    pub(crate) fn events(&self) -> impl FnMut(String) -> Option<String> + use<> {
        let (sender, hears) = (self.sender.clone(), self.hears);
        move |event| {
            if !hears {
                return None;
            }
            let (answer, awaited) = sync_channel(1);
            sender.send(Message::Event(event, answer)).ok()?;
            awaited.recv().ok().flatten()
        }
    }
}

/// One who tells of epochs, with the model after each of them.
pub(crate) struct Epochs {
    sender: Sender<Message>,
    wanted: bool,
}

impl Epochs {
    /// Whether somebody wants to hear of them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Tells of an epoch; the reason to stop, if there is one.
    pub(crate) fn tell(&self, epoch: u64, model: harmonium::Model) -> Option<String> {
        let (answer, awaited) = sync_channel(1);
        self.sender.send(Message::Epoch(epoch, Box::new(model), answer)).ok()?;
        awaited.recv().ok().flatten()
    }
}

/// What a call leaves: its result, and the exception that ended it early, if one did.
pub(crate) struct Outcome<T> {
    pub(crate) result: Result<T, Failure>,
    pub(crate) interrupted: Option<PyErr>,
}

impl<T> Outcome<T> {
    /// The result, unless something ended it early.
    pub(crate) fn finished(self) -> PyResult<T> {
        match self.interrupted {
            Some(exception) => Err(exception),
            None => Ok(self.result?),
        }
    }
}

/// Runs `work` with the interpreter released. `face` is an object with the methods `progress`, `note`, `announce` and
/// `event`, or nothing.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    face: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Teller<'_>) -> Result<T, Failure> + Send,
) -> PyResult<Outcome<T>> {
    let pool = Pool::take()?;
    let hears = face.map(|face| face.getattr("hears")?.is_truthy()).transpose()?.unwrap_or(false);
    let (sender, mut receiver) = channel();
    let stop = AtomicBool::new(false);
    let (mut result, mut interrupted) = (None, None);
    pool.threads.in_place_scope(|scope| {
        let (result, stop) = (&mut result, &stop);
        let mut teller = Teller { sender, stop, told: Instant::now(), hears };
        scope.spawn(move |_| {
            let done = teller.sender.clone();
            *result = Some(caught(AssertUnwindSafe(|| work(&mut teller))));
            // Fails only if nobody waits any more.
            let _ = done.send(Message::Done);
        });
        interrupted = attend(py, face, &mut receiver, stop);
    });
    pool.give_back();
    let defect = || Err(Failure::Defect("the work left no result".into()));
    Ok(Outcome { result: result.unwrap_or_else(defect), interrupted })
}

/// The same without a face, for what takes little time.
pub(crate) fn quietly<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    py.detach(|| caught(AssertUnwindSafe(work))).map_err(Into::into)
}

/// A panic as a failure.
fn caught<T>(work: AssertUnwindSafe<impl FnOnce() -> Result<T, Failure>>) -> Result<T, Failure> {
    let said = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    catch_unwind(work).unwrap_or_else(|panic| Err(Failure::Defect(said(panic))))
}

/// Listens until the work is done; the first exception asks it to stop.
fn attend(
    py: Python<'_>,
    face: Option<&Bound<'_, PyAny>>,
    receiver: &mut Receiver<Message>,
    stop: &AtomicBool,
) -> Option<PyErr> {
    let mut interrupted: Option<PyErr> = None;
    loop {
        // Moved into the closure, since only one thread may listen.
        let ear = &mut *receiver;
        let message = py.detach(move || ear.recv_timeout(LOOK));
        let heard = match message {
            Ok(Message::Done) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(message) => hear(face.filter(|_| interrupted.is_none()), message),
        };
        if let Err(exception) = heard.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            interrupted.get_or_insert(exception);
        }
    }
    // A signal that came with the end still counts.
    if let Err(exception) = py.check_signals() {
        interrupted.get_or_insert(exception);
    }
    interrupted
}

fn hear(face: Option<&Bound<'_, PyAny>>, message: Message) -> PyResult<()> {
    let Some(face) = face else { return Ok(()) };
    match message {
        Message::Progress { what, done, total, detail } => {
            face.call_method1("progress", (what, done, total, detail))?;
        }
        Message::Note(text) => {
            face.call_method1("note", (crate::errors::spelt(&text),))?;
        }
        Message::Announcement(text) => {
            face.call_method1("announce", (crate::errors::spelt(&text),))?;
        }
        Message::Event(event, answer) => {
            let reason = face.call_method1("event", (event,))?;
            // Fails only if the work has ended.
            let _ = answer.send(reason.extract()?);
        }
        Message::Epoch(epoch, model, answer) => {
            let reason = face.call_method1("epoch", (epoch, Model::from(*model)))?;
            // Fails only if the work has ended.
            let _ = answer.send(reason.extract()?);
        }
        Message::Done => {}
    }
    Ok(())
}
