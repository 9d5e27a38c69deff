//! What belongs to the process that made it.
//!
//! A program that forks without executing anything, as one that becomes a daemon does, has a copy
//! of all our memory, and none of our threads. The kernel's objects behind descriptors are shared
//! with the copy. So what speaks of threads, or changes such an object, knows whose it is.

/// The process that made something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// No process has this id.
    pub const NOBODY: Owner = Owner(0);

    #[cfg(test)]
    pub fn of_another_process() -> Owner {
        Owner(1)
    }

    pub fn this_process() -> Owner {
        Owner(std::process::id())
    }

    pub fn is_this_process(self) -> bool {
        self == Owner::this_process()
    }
}
