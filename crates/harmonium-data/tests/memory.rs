//! A threshold applied while reading keeps the grey values out of memory.
//!
//! This test is alone in its file: it measures the peak of its whole process.

#![cfg(all(feature = "readers", target_os = "linux"))]

mod write;

use harmonium_data::{Binarize, Options, open_dataset};
use std::io::Write;

/// The most memory this process has held, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[test]
fn sixty_thousand_pictures_fit_in_twenty_megabytes() {
    let path = std::env::temp_dir().join(format!("harmonium-memory-{}.gz", std::process::id()));
    // Members one after the other, so that the test itself never holds the file.
    let mut gz = write::gz(&write::idx(8, &[60_000, 28, 28], &[]));
    let pictures: Vec<u8> =
        (0..784 * 100_u32).map(|i| i.wrapping_mul(97).to_le_bytes()[0]).collect();
    let member = write::gz(&pictures);
    (0..600).for_each(|_| gz.extend(&member));
    std::fs::write(&path, &gz).unwrap();
    drop(gz);
    let before = peak();
    let spec = path.display().to_string();
    let loaded = open_dataset(&spec, &Options::default(), Binarize::Threshold(0.5)).unwrap();
    let after = peak();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((loaded.dataset.n_rows(), loaded.dataset.n_columns()), (60_000, 784));
    assert!(loaded.dataset.table().is_bits());
    let (Some(before), Some(after)) = (before, after) else {
        // Written past the capture of the test harness, so that it is seen.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: this system does not tell the peak of a process");
        return;
    };
    assert!(after - before < 20 << 20, "{} more bytes", after - before);
}
