//! Pipes are read once, and never waited for where a file is expected.

#![cfg(all(feature = "readers", unix))]

mod write;

use harmonium_data::{Error, Loaded, Options, Reading, open, open_labels};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use write::{gz, npy, npz, png};

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success(), "mkfifo makes a pipe");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What `read` makes of a pipe that gives `bytes` once and nothing to those who open it again.
fn through_a_pipe<T: Send + 'static>(
    name: &str,
    bytes: Vec<u8>,
    read: impl FnOnce(&str) -> T + Send + 'static,
) -> T {
    let folder = Folder::new(name);
    let path = folder.pipe("pipe");
    let writer = path.clone();
    thread::spawn(move || {
        let mut bytes = bytes;
        // A second opening finds a writer that has nothing left.
        while std::fs::write(&writer, &bytes).is_ok() && writer.exists() {
            bytes.clear();
            thread::sleep(Duration::from_millis(20));
        }
    });
    in_time(move || read(&path.display().to_string()))
}

/// The result of `work`, which must not wait for ever.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("the reader comes back")
}

fn shape(loaded: &Loaded) -> (usize, usize) {
    (loaded.table.n_rows(), loaded.table.n_columns())
}

#[test]
fn a_threshold_needs_one_reading() {
    let csv = b"0,16,5\n3,16,9\n8,7,0\n".to_vec();
    for transpose in [false, true] {
        let reading = Reading { binarize: Some("0.5".into()), transpose, ..Reading::default() };
        let name = format!("threshold-{transpose}");
        let piped = {
            let reading = reading.clone();
            through_a_pipe(&name, csv.clone(), move |path| reading.open(path)).unwrap()
        };
        assert_eq!(piped.reading.full_scale, Some(16.0), "the scale that was found is kept");
        assert!(piped.dataset.is_bits());
        let on: Vec<f32> = (0..3).map(|c| piped.dataset.table().at(0, c)).collect();
        assert_eq!(on, if transpose { [0.0, 0.0, 1.0] } else { [0.0, 1.0, 0.0] });
    }
}

#[test]
fn archives_come_through_pipes() {
    let archive = npz(&[("x", npy("|u1", false, "(3, 2)", &[1, 2, 3, 4, 5, 6]))]);
    for (name, bytes) in [("npz", archive.clone()), ("npz-gz", gz(&archive))] {
        let loaded = through_a_pipe(name, bytes, |path| open(path, &Options::default())).unwrap();
        assert_eq!(shape(&loaded), (3, 2));
    }
}

#[test]
fn labels_come_through_pipes() {
    let table = b"0,1\n1,0\n0,1\n".to_vec();
    let array = npy("<i4", false, "(3,)", &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    for (name, bytes) in [("labels-csv", table), ("labels-npy", array)] {
        let labels =
            through_a_pipe(name, bytes, |path| open_labels(path, &Options::default())).unwrap();
        assert_eq!(labels.values(), [1, 0, 1], "{name}");
    }
}

#[test]
fn a_pipe_that_gives_nothing_is_called_a_pipe() {
    let error =
        through_a_pipe("nothing", Vec::new(), |path| open(path, &Options::default())).unwrap_err();
    assert!(matches!(error.cause(), Error::EmptyPipe), "{error}");
    assert!(error.hint().contains("once"));
}

#[test]
fn a_pipe_among_pictures_is_refused() {
    let folder = Folder::new("pictures");
    let picture = png(1, 2, png::ColorType::Grayscale, &[7, 250]);
    std::fs::write(folder.0.join("1.png"), picture).unwrap();
    folder.pipe("2.png");
    let path = folder.0.display().to_string();
    let error = in_time(move || open(&path, &Options::default())).unwrap_err();
    assert!(matches!(error.cause(), Error::NotAFile), "{error}");
    assert!(error.to_string().contains("2.png"), "{error}");
}
