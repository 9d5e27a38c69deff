//! The files of one group.

use crate::error::Result;
use crate::group::Group;
use crate::run::Run;
use fullstop_core::id::Id;
use fullstop_store::Standing;

#[derive(Clone, Debug)]
pub(crate) struct GroupFiles(Group);

impl GroupFiles {
    pub fn closed_by(&self) -> Result<Option<String>> {
        let Group { runs, name } = &self.0;
        Ok(name.closed_by(runs.store().root())?.map(str::to_owned))
    }

    pub fn members(&self) -> Result<Vec<Run>> {
        let registered = self.registered()?;
        if !registered.is_empty() {
            return Ok(registered);
        }
        let Group { runs, name } = &self.0;
        let store = runs.store();
        let is_in = |group: &String| name.contains(group);
        let is_member =
            |id: &Id| store.record(id).is_ok_and(|it| it.group.as_ref().is_some_and(is_in));
        Ok(store.live()?.into_iter().filter(is_member).map(|id| runs.run(id)).collect())
    }

    pub fn registered(&self) -> Result<Vec<Run>> {
        let Group { runs, name } = &self.0;
        let store = runs.store();
        let ids = name.members(store.root())?;
        let live = ids.into_iter().filter(|id| !matches!(store.standing(id), Ok(Standing::Over)));
        Ok(live.map(|id| runs.run(id)).collect())
    }

    pub fn open(&self) -> Result<()> {
        let Group { runs, name } = &self.0;
        Ok(name.open(runs.store().root())?)
    }

    pub fn forget_if_empty(&self) -> Result<()> {
        let Group { runs, name } = &self.0;
        Ok(name.forget_if_empty(runs.store().root())?)
    }
}

impl Group {
    pub(crate) fn files(&self) -> GroupFiles {
        GroupFiles(self.clone())
    }
}
