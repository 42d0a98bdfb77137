//! Threads that do not fall asleep between the parallel parts of a step.
//!
//! A step of a millisecond has several parallel parts with serial work between them. A thread that
//! finds nothing to do goes to sleep there, and has to be woken. As long as [`Awake`] lives, the
//! other threads of the pool look for work without end instead.

use rayon::Yield;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pauses between two looks for work: enough to leave the other threads' queues alone.
const PAUSES: usize = 64;
/// Looks in vain after which the processor is offered to others.
const PATIENCE: usize = 1_000;

/// Keeps the other threads of this pool awake until it is dropped.
#[derive(Debug)]
pub(super) struct Awake {
    over: Arc<AtomicBool>,
}

impl Awake {
    /// `None` where no thread waits for this one: outside of a pool, or alone in it.
    pub(super) fn new() -> Option<Self> {
        let me = rayon::current_thread_index()?;
        if rayon::current_num_threads() < 2 {
            return None;
        }
        let awake = Self { over: Arc::new(AtomicBool::new(false)) };
        let over = Arc::clone(&awake.over);
        rayon::spawn_broadcast(move |context| {
            // This thread has work; were it to wait here, nobody would end it.
            if context.index() != me {
                look_for_work(&over);
            }
        });
        Some(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn look_for_work(over: &AtomicBool) {
    let mut in_vain = 0;
    while !over.load(Ordering::Relaxed) {
        if rayon::yield_now() == Some(Yield::Executed) {
            in_vain = 0;
            continue;
        }
        in_vain += 1;
        if in_vain > PATIENCE {
            std::thread::yield_now();
        } else {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Awake;
    use rayon::prelude::*;

    /// Work gets done while others look for it, also by a pool that is asked for it twice at once,
    /// and everybody is free again afterwards.
    #[test]
    fn the_pool_works_while_it_is_awake() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for _ in 0..20 {
            let sums: Vec<u64> = pool.install(|| {
                let _awake = Awake::new().unwrap();
                let _again = Awake::new().unwrap();
                (0..50).map(|n| (0..1000_u64).into_par_iter().map(|k| k * n).sum()).collect()
            });
            assert!(sums.iter().zip(0..).all(|(sum, n)| *sum == 499_500 * n));
        }
    }

    #[test]
    fn nobody_waits_outside_of_a_pool_or_alone_in_it() {
        assert!(Awake::new().is_none());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(pool.install(Awake::new).is_none());
    }
}
