//! Threads for one call. Results never depend on how many there are, nor on whether one can be started.
//!
//! Threads live as long as the call only: a pool would leave a forked child waiting for threads it does not
//! have. Where the system refuses to start a thread, its work is done on the calling one.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::runtime::error::{Error, Result};
use crate::runtime::simd::Level;

/// Values a block of rows should hold: 1 MB of f32, so that handing out a block costs nothing and no thread ends
/// long after the others.
const BLOCK_VALUES: usize = 1 << 18;

/// Below this many values one thread is faster: starting a second takes about as long (30 us).
pub const SERIAL_BELOW: usize = 1 << 18;

/// How long the number of cores is remembered. The system reads files of its own to tell it (50 to 80 us), as long as
/// a fit of a thousand rows takes; a process that is moved to other cores is served with their number from then on.
const REMEMBERED: Duration = Duration::from_secs(1);

/// How work on rows is cut up. No choice here can change a bit of the result.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Threads to use; `None` takes the machine's, or one if the work is small.
    pub threads: Option<usize>,
    /// Rows handed out at a time; `None` chooses.
    pub block_rows: Option<usize>,
    /// Instruction set.
    pub level: Level,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { threads: None, block_rows: None, level: Level::best() }
    }
}

/// Threads for work of `size` values: what the caller wants, else one below `serial_below` (starting a second
/// one takes about as long as the work), else the machine's.
pub fn threads_for(wanted: Option<usize>, size: usize, serial_below: usize) -> usize {
    match wanted {
        Some(threads) => threads.max(1),
        None if size < serial_below => 1,
        None => cores(),
    }
}

/// Cores that this process may use.
fn cores() -> usize {
    static ASKED: Mutex<Option<(Instant, usize)>> = Mutex::new(None);
    // Nobody waits: a child forked while another thread holds the lock would never get it.
    let mut asked = ASKED.try_lock().ok();
    if let Some(Some((when, cores))) = asked.as_deref()
        && when.elapsed() < REMEMBERED
    {
        return *cores;
    }
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    if let Some(asked) = asked.as_deref_mut() {
        *asked = Some((Instant::now(), cores));
    }
    cores
}

/// `work(0)`, `work(1)`, ... `work(threads - 1)`, each once, in that order in the result.
///
/// # Errors
/// The first error in that order; all work has ended by then.
pub fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    run(threads, thread::Builder::new, work)
}

/// Do `work` once for each job. Threads fetch the next job when they are ready, so that one that starts late
/// holds up nobody.
///
/// # Errors
/// One of the errors of `work`; the thread that met it fetches no more jobs.
pub fn for_each<J: Send>(
    threads: usize,
    jobs: impl Iterator<Item = J> + Send,
    work: impl Fn(J) -> Result<()> + Sync,
) -> Result<()> {
    let jobs = Mutex::new(jobs);
    let fetch = |_| loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        match next {
            Some(job) => work(job)?,
            None => return Ok(()),
        }
    };
    on_threads(threads, fetch).map(|_| ())
}

/// Add all rows, block by block: each thread `start`s a state of its own, and `add`s to it whatever block is next.
/// `row_size` is the work on one row, in values. Returns the states, one a thread.
///
/// # Errors
/// One of the errors of `start` and `add`; the other threads stop at their next block then.
pub fn in_blocks<S: Send>(
    rows: usize,
    row_size: usize,
    plan: Plan,
    start: impl Fn() -> Result<S> + Sync,
    add: impl Fn(Range<usize>, &mut S) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let block_rows = plan.block_rows.unwrap_or(BLOCK_VALUES / row_size.max(1)).max(1);
    let blocks = rows.div_ceil(block_rows);
    let next = AtomicUsize::new(0);
    let work = |_| -> Result<S> {
        let mut state = start()?;
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks {
                return Ok(state);
            }
            let added = add(block * block_rows..((block + 1) * block_rows).min(rows), &mut state);
            if added.is_err() {
                // Nothing will be returned: let the other threads stop at their next block.
                next.store(blocks, Ordering::Relaxed);
                added?;
            }
        }
    };
    let threads = threads_for(plan.threads, rows.saturating_mul(row_size), SERIAL_BELOW);
    on_threads(threads.min(blocks.max(1)), work)
}

/// The sum of the threads' sums, place by place.
///
/// # Errors
/// The first error among them.
pub fn add_up(parts: impl Iterator<Item = Result<Vec<i64>>>) -> Result<Vec<i64>> {
    let mut total: Option<Vec<i64>> = None;
    for part in parts {
        let part = part?;
        match &mut total {
            None => total = Some(part),
            Some(total) => total.iter_mut().zip(part).for_each(|(a, b)| *a += b),
        }
    }
    Ok(total.unwrap_or_default())
}

fn run<T: Send>(
    threads: usize,
    builder: impl Fn() -> thread::Builder,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if threads <= 1 {
        return Ok(vec![work(0)?]);
    }
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|number| builder().spawn_scoped(scope, move || work(number)).map_err(|_| number))
            .collect();
        let own = work(0);
        // Every thread is waited for before the first error is returned: the scope would do so anyway.
        let results: Vec<Result<T>> = others
            .into_iter()
            .map(|other| match other {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::invalid("a worker thread stopped unexpectedly"))),
                Err(not_started) => work(not_started),
            })
            .collect();
        std::iter::once(own).chain(results).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A thread that no system can start: its stack would not fit into the address space.
    fn impossible() -> thread::Builder {
        thread::Builder::new().stack_size(1 << 60)
    }

    #[test]
    fn the_impossible_thread_is_impossible() {
        assert!(impossible().spawn(|| ()).is_err());
    }

    #[test]
    fn all_work_is_done_once_and_in_order_even_if_no_thread_can_be_started() {
        for builder in [thread::Builder::new, impossible] {
            for threads in [0, 1, 2, 7] {
                let calls = AtomicUsize::new(0);
                let results = run(threads, builder, |number| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    Ok(number)
                });
                assert_eq!(results, Ok((0..threads.max(1)).collect::<Vec<_>>()));
                assert_eq!(calls.into_inner(), threads.max(1));
            }
        }
    }

    #[test]
    fn every_job_is_done_once() {
        for threads in [1, 2, 5] {
            let done = Mutex::new(vec![0; 100]);
            let work = |job: usize| {
                done.lock().unwrap_or_else(PoisonError::into_inner)[job] += 1;
                Ok(())
            };
            assert_eq!(for_each(threads, 0..100, work), Ok(()));
            assert_eq!(done.into_inner().unwrap_or_else(PoisonError::into_inner), vec![1; 100]);
        }
    }

    #[test]
    fn the_first_error_is_returned() {
        for builder in [thread::Builder::new, impossible] {
            let failed =
                run(
                    4,
                    builder,
                    |number| {
                        if number >= 2 { Err(Error::invalid(number.to_string())) } else { Ok(()) }
                    },
                );
            assert_eq!(failed, Err(Error::invalid("2")));
        }
    }

    #[test]
    fn cores_are_those_of_the_process_asked_or_remembered() {
        let now = thread::available_parallelism().map_or(1, |cores| cores.get());
        assert_eq!([cores(), cores()], [now, now]);
    }

    #[test]
    fn small_work_stays_on_one_thread_unless_asked() {
        assert_eq!(threads_for(None, 9, 10), 1);
        assert!(threads_for(None, 10, 10) >= 1);
        assert_eq!(threads_for(Some(3), 0, 10), 3);
        assert_eq!(threads_for(Some(0), 0, 10), 1);
    }
}
