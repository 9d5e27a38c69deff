//! The journal as a watch reads it: what was appended since, whatever becomes of the file.

use fullstop_store::{Cursor, JournalReader, News, Notice, Store};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Tail {
    store: Arc<Store>,
    /// Nothing, before it is opened, and where it can neither be read nor made.
    reader: Option<JournalReader>,
}

impl Tail {
    pub fn new(store: &Arc<Store>) -> Tail {
        Tail { store: Arc::clone(store), reader: None }
    }

    /// What happens from now on is read.
    pub fn open(&mut self) {
        self.reader = self.store.journal().ok();
    }

    pub fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    pub fn cursor(&self) -> Option<Cursor> {
        self.reader.as_ref().map(JournalReader::cursor)
    }

    /// Goes on from there. Returns false if what came since cannot be told.
    pub fn go_to(&mut self, cursor: &Cursor) -> bool {
        self.reader.as_mut().is_some_and(|reader| reader.go_to(cursor).unwrap_or(false))
    }

    /// The notices since the last time; nothing, if some were missed, so that any run may
    /// stand differently.
    pub fn read(&mut self) -> Option<Vec<Notice>> {
        let Some(reader) = &mut self.reader else {
            self.open();
            return if self.is_open() { None } else { Some(Vec::new()) };
        };
        let unread = News { missed: true, ..News::default() };
        let news = reader.read().unwrap_or(unread);
        let is_other = reader.reopen_if_replaced().unwrap_or_default();
        (!news.missed && !is_other).then_some(news.notices)
    }
}
