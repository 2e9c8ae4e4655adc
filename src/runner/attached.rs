//! A task that ends with its owner.

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
pub struct Attached(pub JoinHandle<()>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.abort();
    }
}
