//! Values that are not to be shown.

/// Words in the name of a variable that make its value a secret.
const SECRET: [&str; 11] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
    "PRIVATE",
    "COOKIE",
    "SESSION",
    "SIGNATURE",
];
const MASK: &str = "••••••";

/// The value of a variable as it may be shown.
///
/// ```
/// assert_eq!(fullstop::masked("EDITOR", "vi"), "vi");
/// assert_eq!(fullstop::masked("OPENAI_API_KEY", "sk-123"), "••••••");
/// assert_eq!(fullstop::masked("DATABASE_URL", "pg://me:pw@host/db"), "pg://me:••••••@host/db");
/// ```
pub fn masked(name: &str, value: &str) -> String {
    let name = name.to_uppercase();
    let named = SECRET.iter().any(|word| name.contains(word));
    if !value.is_empty() && (named || looks_secret(value)) {
        return MASK.to_owned();
    }
    without_password(value).unwrap_or_else(|| value.to_owned())
}

/// Whatever its variable is called.
fn looks_secret(value: &str) -> bool {
    const BEGINNINGS: [&str; 11] = [
        "sk-",
        "sk_",
        "pk_",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "eyJ",
    ];
    const INSIDE: [&str; 4] = ["password=", "pwd=", "secret=", "private key"];
    let lower = value.to_lowercase();
    BEGINNINGS.iter().any(|start| value.starts_with(start))
        || INSIDE.iter().any(|word| lower.contains(word))
}

/// A URL that names a user may name a password as well.
fn without_password(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (login, host) = authority.rsplit_once('@')?;
    let (user, _) = login.split_once(':')?;
    let path = &rest[authority.len()..];
    Some(format!("{scheme}://{user}:{MASK}@{host}{path}"))
}
