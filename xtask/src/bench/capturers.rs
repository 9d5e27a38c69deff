//! Ways of getting what a command prints into a file, where they install by one
//! command. One that cannot be had stays in the table, with the reason.

use std::path::{Path, PathBuf};

use fullstop_bench::plan::{CaptureRole, Capturer};

use super::peers::{node, one_command, python};
use crate::Outcome;

/// Nothing but the words, which `sh` takes as they are.
type Scripts = (Option<String>, String);

pub fn all(fullstop: &Path, root: &Path, workshop: &Path) -> Vec<Capturer> {
    let own = format!("FULLSTOP_DIR=\"$DIR/fullstop\" {}", quoted(fullstop));
    // What they are called stands in a table, whose cells end at a `|`.
    let mut all = vec![
        of("cat > file", CaptureRole::Cat, Ok((None, r#""$@" | cat > "$DIR/out""#.to_owned()))),
        of(
            "fullstop start",
            CaptureRole::Start,
            Ok((None, format!("id=$({own} start -- \"$@\") && {own} wait \"$id\" > /dev/null"))),
        ),
        of(
            "tee file, shown to nobody",
            CaptureRole::Peer,
            Ok((None, r#""$@" | tee "$DIR/out" > /dev/null"#.to_owned())),
        ),
        of(
            "fullstop run --log, shown to nobody",
            CaptureRole::Peer,
            Ok((None, format!("{own} run --log -- \"$@\" > /dev/null"))),
        ),
        of(
            "tee file, shown to cat",
            CaptureRole::Peer,
            Ok((None, r#""$@" | tee "$DIR/out" | cat > /dev/null"#.to_owned())),
        ),
        of(
            "fullstop run --log, shown to cat",
            CaptureRole::Peer,
            Ok((None, format!("{own} run --log -- \"$@\" | cat > /dev/null"))),
        ),
    ];
    let peer = |name: &str, scripts| of(name, CaptureRole::Peer, scripts);
    all.push(Capturer {
        note: Some(
            "the command itself writes to the file; its end is asked for now and then".to_owned(),
        ),
        ..peer("pueue add", pueue(workshop))
    });
    all.push(peer("pm2 start", pm2(workshop)));
    all.push(peer("supervisorctl start", supervisor(workshop)));
    all.push(Capturer {
        note: Some("the start of node is in it".to_owned()),
        ..peer("execa", execa(&root.join("bench/peers/execa"), workshop))
    });
    all
}

fn of(name: &str, role: CaptureRole, scripts: Outcome<Scripts>) -> Capturer {
    let ((before, script), missing) = match scripts {
        Ok(scripts) => (scripts, None),
        Err(error) => ((None, String::new()), Some(error.to_string())),
    };
    Capturer { name: name.to_owned(), role, before, script, note: None, missing }
}

fn pueue(workshop: &Path) -> Outcome<Scripts> {
    let dir = workshop.join("pueue");
    let (daemon, client) = (dir.join("bin/pueued"), dir.join("bin/pueue"));
    if !daemon.exists() || !client.exists() {
        std::fs::create_dir_all(&dir)?;
        one_command(
            "cargo install --quiet --locked --root . --target-dir build --version ^4 pueue",
            &dir,
        )?;
    }
    let (daemon, client) = (quoted(&daemon), quoted(&client));
    Ok((
        // The client says when the daemon can be talked to.
        Some(format!(
            "{daemon} --daemonize > /dev/null 2>&1\n\
             until {client} status > /dev/null 2>&1; do sleep 0.1; done"
        )),
        format!("id=$({client} add --print-task-id -- \"$@\") && {client} wait --quiet \"$id\""),
    ))
}

fn pm2(workshop: &Path) -> Outcome<Scripts> {
    let dir = workshop.join("pm2");
    let program = dir.join("node_modules/.bin/pm2");
    if !program.exists() {
        std::fs::create_dir_all(&dir)?;
        one_command("npm install --silent --no-audit --no-fund --no-package-lock pm2@7", &dir)?;
    }
    let pm2 = quoted(&program);
    let home = "export PM2_HOME=\"$DIR/pm2\"";
    Ok((
        Some(format!("{home}\n{pm2} ping > /dev/null 2>&1")),
        format!(
            "{home}\nprogram=$1\nshift\n\
             {pm2} start \"$program\" --name flood --interpreter none --no-autorestart \
             --output \"$DIR/out\" --error /dev/null -- \"$@\" > /dev/null"
        ),
    ))
}

fn supervisor(workshop: &Path) -> Outcome<Scripts> {
    python(workshop, "supervisor")?;
    let bin = workshop.join("venv/bin");
    let (daemon, client) = (quoted(bin.join("supervisord")), quoted(bin.join("supervisorctl")));
    let settings = "[supervisord]\nnodaemon=false\nlogfile=%s/supervisord.log\npidfile=%s/pid\n\
         [unix_http_server]\nfile=%s/s\n\
         [supervisorctl]\nserverurl=unix://%s/s\n\
         [rpcinterface:supervisor]\n\
         supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n\
         [program:flood]\ncommand=%s\nautostart=false\nautorestart=false\nstartsecs=0\n\
         stdout_logfile=%s/out\nstdout_logfile_maxbytes=0\n";
    Ok((
        Some(format!(
            "printf '{}' \"$DIR\" \"$DIR\" \"$DIR\" \"$DIR\" \"$*\" \"$DIR\" > conf\n\
             {daemon} -c conf > /dev/null 2>&1",
            settings.replace('\n', "\\n")
        )),
        format!("{client} -c conf start flood > /dev/null"),
    ))
}

fn execa(sources: &Path, workshop: &Path) -> Outcome<Scripts> {
    let peer = node(sources, workshop)?.iter().map(quoted).collect::<Vec<_>>();
    Ok((None, format!("{} capture \"$DIR/out\" \"$@\"", peer.join(" "))))
}

/// As one word of `sh`.
fn quoted(path: impl Into<PathBuf>) -> String {
    format!("'{}'", path.into().display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_quote_stays_one_word() {
        assert_eq!(quoted("/it's here"), r"'/it'\''s here'");
    }

    #[test]
    fn what_cannot_be_had_says_why() {
        let capturer = of("x", CaptureRole::Peer, Err("no network".into()));
        assert_eq!(capturer.missing.as_deref(), Some("no network"));
    }
}
