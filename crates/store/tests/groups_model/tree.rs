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

/// The generation of every new group, in the variant where they have the same.
const NEW: u8 = 0;

/// A directory, and what is in it. A mark is a file with a generation in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    pub dir: bool,
    pub members: bool,
    pub open: Option<u8>,
    pub closed: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tree {
    outer: Group,
    inner: Group,
    /// Greater than every generation that is written down or remembered.
    next: u8,
}

impl Tree {
    /// Both groups are there, open and without members.
    pub fn made() -> Tree {
        let mut tree = Tree::default();
        for place in [Place::Outer, Place::Inner] {
            tree.make(place);
            tree.mark(place, false);
            tree.make_members(place);
        }
        tree
    }

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

    /// A random number, in the code.
    fn draw(&mut self) -> u8 {
        self.next += 1;
        self.next
    }

    /// Which generation equals which is all that matters. They are named in the order in which
    /// they are met, so that worlds that are alike are explored once.
    pub fn rename_generations<'a>(&'a mut self, remembered: impl Iterator<Item = &'a mut u8>) {
        let mut met = Vec::new();
        let groups = [&mut self.outer, &mut self.inner].into_iter();
        let marks = groups.flat_map(|group| [&mut group.open, &mut group.closed]).flatten();
        for generation in marks.chain(remembered).filter(|generation| **generation != NEW) {
            let at = met.iter().position(|other| other == generation).unwrap_or(met.len());
            if at == met.len() {
                met.push(*generation);
            }
            *generation = NEW + 1 + u8::try_from(at).expect("a few");
        }
        self.next = NEW + u8::try_from(met.len()).expect("a few");
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

    pub fn has_mark(&self, place: Place) -> bool {
        self.at(place).open.or(self.at(place).closed).is_some()
    }

    /// Links a new mark as `.open`, if there is none by this name; false is ENOENT.
    pub fn mark(&mut self, place: Place, always_the_same: bool) -> bool {
        let group = *self.at(place);
        if group.dir && group.open.is_none() {
            let generation = if always_the_same { NEW } else { self.draw() };
            self.at_mut(place).open = Some(generation);
        }
        group.dir
    }

    /// Renames `.open` to `.closed`; false is ENOENT, and it is not closed already.
    pub fn close(&mut self, place: Place) -> bool {
        let group = self.at_mut(place);
        if let Some(mark) = group.open.take() {
            group.closed = Some(mark);
        }
        group.closed.is_some()
    }

    /// Removes `.closed`; whether it was there.
    pub fn remove_closed(&mut self, place: Place) -> bool {
        self.at_mut(place).closed.take().is_some()
    }

    /// Writes another generation into the mark that was `.closed` a moment ago.
    pub fn change(&mut self, place: Place) {
        let generation = self.draw();
        let group = self.at_mut(place);
        let mark = if group.closed.is_some() { &mut group.closed } else { &mut group.open };
        *mark = mark.map(|_| generation);
    }

    /// Renames `.closed` to `.open`; false is ENOENT.
    pub fn rename_back(&mut self, place: Place) -> bool {
        let group = self.at_mut(place);
        let mark = group.closed.take();
        group.open = mark.or(group.open);
        mark.is_some()
    }

    /// `rmdir`, which the kernel refuses while anything is in it. Whether it is gone.
    pub fn remove(&mut self, place: Place) -> bool {
        let empty = place == Place::Inner || !self.inner.dir;
        let marked = self.has_mark(place);
        let group = self.at_mut(place);
        group.dir &= !empty || group.members || marked;
        !group.dir
    }

    pub fn is_closed_for(self, place: Place) -> bool {
        self.outer.closed.is_some() || (place == Place::Inner && self.inner.closed.is_some())
    }
}
