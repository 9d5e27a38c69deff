use super::*;
use crate::ladder::Action;
use crate::signal::Signal;

fn found(line: &str) -> Option<String> {
    let argv: Vec<&str> = line.split_whitespace().collect();
    for_command(&argv).map(|preset| preset.name)
}

#[test]
fn the_data_is_whole() {
    let data: Data = serde_json::from_str(TEXT).unwrap();
    assert_eq!(names(), ["claude", "codex", "gemini", "opencode", "goose", "aider"]);
    for agent in &data.agents {
        let ladder: Ladder = agent.ladder.parse().unwrap();
        assert_eq!(ladder.to_string(), agent.ladder);
        assert_eq!(ladder.soft()[0].action, Action::Signal(Signal::INT));
        let rest = ladder.after_leader();
        assert_eq!(rest.soft()[0].action, Action::Signal(Signal::TERM));
        assert_eq!(ladder.total(), Ladder::default().total());
        assert!(!agent.why.contains('\n') && agent.why.ends_with('.'));
        for name in agent.aliases.iter().chain([&agent.name]) {
            let preset = by_name(name).unwrap();
            assert_eq!(preset.name, agent.name);
            assert_eq!(preset.ladder, ladder);
        }
    }
    assert_eq!(by_name("vim"), None);
    assert_eq!(by_name(""), None);
}

#[test]
fn finds_agents_however_they_are_started() {
    let table = [
        ("claude", "claude"),
        ("/home/u/.local/bin/claude -p hi", "claude"),
        ("./codex exec", "codex"),
        ("npx @anthropic-ai/claude-code", "claude"),
        ("npx -y @anthropic-ai/claude-code@latest -p hi", "claude"),
        ("npx --yes -- @google/gemini-cli@0.1.4", "gemini"),
        ("npx -p @openai/codex codex exec", "codex"),
        ("npx --package=@openai/codex codex", "codex"),
        ("/usr/bin/npx opencode-ai", "opencode"),
        ("npm exec -- @openai/codex", "codex"),
        ("npm x @openai/codex", "codex"),
        ("bunx --bun @openai/codex", "codex"),
        ("bun x @openai/codex", "codex"),
        ("bun run /x/node_modules/@openai/codex/bin/codex.js", "codex"),
        ("pnpm dlx @google/gemini-cli", "gemini"),
        ("pnpm exec gemini", "gemini"),
        ("yarn dlx @openai/codex", "codex"),
        ("uvx aider-chat", "aider"),
        ("uvx --python 3.12 --from aider-chat@latest aider", "aider"),
        ("uv tool run --from aider-chat aider", "aider"),
        ("uv run aider", "aider"),
        ("pipx run aider-chat[browser]==0.86.0 --model x", "aider"),
        ("pipx run --spec aider-chat aider", "aider"),
        ("deno run -A npm:@anthropic-ai/claude-code", "claude"),
        ("python -m aider", "aider"),
        ("python3.12 -X dev -m aider --model x", "aider"),
        ("python3 /home/u/.local/bin/aider", "aider"),
        ("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js -p", "claude"),
        ("node --no-warnings /x/node_modules/a/node_modules/@openai/codex/bin/codex.js", "codex"),
        ("node --require ./a.js /usr/bin/gemini", "gemini"),
        ("env claude", "claude"),
        ("env -i -u HOME A=1 B=c=d claude -p", "claude"),
        ("/usr/bin/env nohup nice -n 5 npx @openai/codex", "codex"),
        ("timeout -k 5 60 goose run", "goose"),
        ("sudo -u agent claude", "claude"),
    ];
    for (line, name) in table {
        assert_eq!(found(line).as_deref(), Some(name), "{line}");
    }
}

#[test]
fn takes_no_part_of_a_name_for_the_name() {
    let table = [
        "",
        "true",
        "claude-history",
        "claudette",
        "/opt/claude/bin/tool",
        "claude/run",
        "my-claude",
        "Claude",
        "claude.sh",
        "title",
        "package",
        "-y",
        "npx",
        "npx -y",
        "npx -p",
        "npx claude-history",
        "npx @anthropic-ai/claude-code-router",
        "npx @someone/codex",
        "npx @someone/claude-code@latest",
        "npx cowsay claude",
        "npm install @openai/codex",
        "npm run codex",
        "pnpm add @openai/codex",
        "bun add @openai/codex",
        "uvx --from aider-chat python",
        "pipx install aider-chat",
        "python -m pip install aider-chat",
        "python script.py -m aider",
        "python -m",
        "node script.js claude",
        "node /x/node_modules/@openai/codex-sdk/index.js",
        "node /x/node_modules/codex/@openai/codex/index.js",
        "node /srv/claude/server.js",
        "env",
        "env A=1",
        "env A=claude ls",
        "timeout 5",
        "timeout claude",
        "vim claude",
        "sh -c claude",
    ];
    for line in table {
        assert_eq!(found(line), None, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_no_agent() {
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"claude\xff");
    assert_eq!(for_command(&[odd]), None);
    assert_eq!(for_command(&[OsStr::new("npx"), odd]), None);
}
