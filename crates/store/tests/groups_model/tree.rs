//! Two groups on disk, `plan` and `plan/research`, as directories and marks.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// `plan`
    Outer,
    /// `plan/research`
    Inner,
}

impl Place {
    /// Whether a run there is in the group.
    pub fn is_below(self, group: Place) -> bool {
        group == Place::Outer || self == Place::Inner
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    pub dir: bool,
    pub members: bool,
    pub closed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tree {
    outer: Group,
    inner: Group,
}

impl Tree {
    pub fn at(&self, place: Place) -> &Group {
        match place {
            Place::Outer => &self.outer,
            Place::Inner => &self.inner,
        }
    }

    pub fn at_mut(&mut self, place: Place) -> &mut Group {
        match place {
            Place::Outer => &mut self.outer,
            Place::Inner => &mut self.inner,
        }
    }

    /// `mkdir`; false is ENOENT.
    pub fn make(&mut self, place: Place) -> bool {
        let fine = place == Place::Outer || self.outer.dir;
        self.at_mut(place).dir |= fine;
        fine
    }

    pub fn make_members(&mut self, place: Place) -> bool {
        let group = self.at_mut(place);
        group.members |= group.dir;
        group.dir
    }

    /// Creates `.closed`.
    pub fn close(&mut self, place: Place) -> bool {
        let group = self.at_mut(place);
        group.closed |= group.dir;
        group.dir
    }

    /// `rmdir`, which the kernel refuses while anything is in it.
    pub fn remove(&mut self, place: Place) {
        let empty = place == Place::Inner || !self.inner.dir;
        let group = self.at_mut(place);
        group.dir &= !empty || group.members || group.closed;
    }

    pub fn is_closed_for(self, place: Place) -> bool {
        self.outer.closed || (place == Place::Inner && self.inner.closed)
    }
}
