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
    if !value.is_empty() && SECRET.iter().any(|word| name.contains(word)) {
        return MASK.to_owned();
    }
    without_password(value).unwrap_or_else(|| value.to_owned())
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
