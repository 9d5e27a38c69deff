//! `rm --forget` and `prune --forget`: lost runs that cannot be judged from here.

use crate::each::{each, failed};
use crate::explain::explain;
use crate::fail::{FAILED, Fail, complain};
use crate::print::{tell, tell_json};
use fullstop::{Id, Runs};
use serde_json::json as value;

/// What a command that passes over such runs says: what they are, and the line that forgets
/// them.
pub fn hint(count: usize) -> String {
    let (runs, belong, them) = match count {
        1 => ("run", "belongs", "it"),
        _ => ("runs", "belong", "them"),
    };
    format!(
        "{count} lost {runs} {belong} to other machines or pid namespaces, perhaps of containers \
         that are gone, and cannot be judged from here (to forget {them}: fullstop prune --forget)"
    )
}

/// `rm --forget`.
pub async fn some(words: &[String], as_json: bool) -> Result<(), Fail> {
    each(words, failed, async |run| {
        run.forget().await?;
        if as_json {
            tell_json(&value!({ "id": run.id(), "forgotten": true }));
        }
        Ok(())
    })
    .await
}

/// `prune --forget`: all of them. Runs that have ended are not touched.
pub async fn all(dry_run: bool, as_json: bool) -> Result<(), Fail> {
    let runs = Runs::open()?;
    let (mut forgotten, mut failed): (Vec<Id>, _) = (Vec::new(), None);
    for lost in runs.lost_elsewhere().await? {
        match runs.forget(&lost.id, dry_run).await {
            Ok(None) => {}
            Ok(Some(whereabouts)) => {
                if !as_json {
                    let verb = if dry_run { "would be forgotten" } else { "forgotten" };
                    let name = lost.name.map(|name| format!(" {name}")).unwrap_or_default();
                    tell(&format!("{}{name} {verb}: {whereabouts}\n", lost.id));
                }
                forgotten.push(lost.id);
            }
            Err(error) => {
                complain(explain(&error));
                failed = Some(Fail::silent(FAILED));
            }
        }
    }
    if as_json {
        tell_json(&value!({ "forgotten": forgotten, "dry_run": dry_run }));
    } else if forgotten.is_empty() && failed.is_none() {
        tell("nothing to forget\n");
    }
    failed.map_or(Ok(()), Err)
}
