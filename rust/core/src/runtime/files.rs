//! Files on disk.
#![cfg(unix)]
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::thread::Builder;

/// Return when the contents of all these open files are on disk.
///
/// All at once: a file system writes its own journal once for all that wait, and each wait for a disk costs
/// the same however many there are.
pub fn sync(descriptors: &[RawFd]) -> io::Result<()> {
    let Some((last, others)) = descriptors.split_last() else { return Ok(()) };
    std::thread::scope(|scope| {
        let start = |&descriptor: &RawFd| {
            Builder::new().spawn_scoped(scope, move || sync_one(descriptor)).map_err(|_| descriptor)
        };
        let waiting: Vec<_> = others.iter().map(start).collect();
        let mut result = sync_one(*last);
        for other in waiting {
            let other = match other {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))),
                // The system has no thread to spare: one after the other is as durable.
                Err(descriptor) => sync_one(descriptor),
            };
            result = result.and(other);
        }
        result
    })
}

fn sync_one(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the file is only borrowed: it is never closed here, and a number that is no open file is an error
    // of the system call.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn one_file_that_fails_is_an_error_of_all() {
        let file = File::open("/dev/null").expect("a file that can't be synced");
        assert!(sync(&[]).is_ok());
        let path = std::env::temp_dir().join(format!("fliphat-sync-{}", std::process::id()));
        let good = File::create(&path).expect("a temporary file");
        assert!(sync(&[good.as_raw_fd(), good.as_raw_fd()]).is_ok());
        assert!(sync(&[file.as_raw_fd(), good.as_raw_fd()]).is_err());
        assert!(sync(&[good.as_raw_fd(), file.as_raw_fd()]).is_err());
        std::fs::remove_file(path).expect("its name");
    }
}
