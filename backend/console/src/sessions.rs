//! Sessions: begun with a key or a link, used by requests, ended by time, by their key or by whoever has them.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use colloquy_accounts::{
    KeyRefused, Principal,
    keys::{self, KnownKey},
};
use colloquy_http::ApiError;
use colloquy_kernel::Base;
use colloquy_store::StoreError;

use crate::{
    Console,
    store::{self, SessionRow},
    token::Token,
};

/// How long a session lasts that nobody uses.
const IDLE: Duration = Duration::from_secs(12 * 3_600);
/// How long a session lasts at most.
pub(crate) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a link may last.
pub(crate) const LONGEST_LINK: Duration = Duration::from_secs(24 * 3_600);
/// How exact it is when a session was used last.
const USED_STEP: Duration = Duration::from_secs(60);
/// How far the clocks of nodes may differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);
/// How many sessions of a key there may be; another one ends the one that was used longest ago.
const MOST_OF_KEY: i64 = 100;
/// How many links of a key there may be; another one takes the place of the one that expires first.
const MOST_LINKS_OF_KEY: i64 = 100;

/// How long ago a response that lasts may have asked for its session: it does so more than once in this time.
const OF_LATE: Duration = Duration::from_secs(45);
/// How many sessions are read with one statement: SQLite looks each of its parameters up among those before it.
const READ_AT_ONCE: usize = 128;

/// A session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// The hash of its id.
    pub(crate) sha256: String,
    /// The key that it was begun with.
    pub(crate) key: KnownKey,
    /// When it was begun, in milliseconds since 1970.
    pub(crate) created_at: i64,
    /// When it was used last, to about a minute.
    last_used_at: i64,
}

impl Session {
    /// When it ends if nobody uses it any more.
    pub(crate) fn expires_at(&self) -> i64 {
        let idle = self.last_used_at + millis(IDLE);
        idle.min(self.created_at + millis(LONGEST))
    }

    /// Returns true if it has ended. One of a clock that was ahead would last longer than it may.
    fn has_ended(&self, now: i64) -> bool {
        self.expires_at() <= now || self.created_at > now + millis(CLOCKS_DIFFER)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// What a session is begun with.
#[derive(Debug)]
pub(crate) struct Beginning<'a> {
    pub(crate) key: KnownKey,
    /// The link that is used up by it.
    pub(crate) link: Option<&'a Token>,
    /// The sessions that it takes the place of.
    pub(crate) replaced: &'a [Token],
}

/// Begins a session, and returns it with its id, of which there is no other copy; `None` if the link was used in the meantime.
///
/// # Errors
/// The database's failure.
pub(crate) async fn begin(
    console: &Console,
    beginning: Beginning<'_>,
) -> Result<Option<(Token, Session)>, StoreError> {
    let Beginning {
        key,
        link,
        replaced,
    } = beginning;
    let id = Token::make();
    let now = console.clock.now_ms();
    let session = Session {
        sha256: id.sha256(),
        key,
        created_at: now,
        last_used_at: now,
    };
    let replaced: Vec<String> = replaced.iter().map(Token::sha256).collect();
    let transaction = console.store.begin().await?;
    // Locks the key before the link, as whoever deletes a key does, and is there to be ended once the link is gone.
    store::insert_session(&transaction, &session.sha256, &session.key, now).await?;
    if let Some(link) = link
        && !store::delete_link(&transaction, &link.sha256()).await?
    {
        return Ok(None);
    }
    for replaced in &replaced {
        store::delete_session(&transaction, replaced).await?;
    }
    store::bound_sessions(&transaction, &session.sha256, &session.key, MOST_OF_KEY).await?;
    transaction.commit().await?;
    console
        .sessions
        .forget(|sha256, _| replaced.contains(sha256));
    Ok(Some((id, session)))
}

/// Returns the session of this id, for a request that came `from` an address.
///
/// # Errors
/// 401 for one that has ended or never was, 429 where the address has tried too many, 503 when the database is away.
pub(crate) async fn find(
    console: &Console,
    id: &Token,
    from: IpAddr,
) -> Result<Arc<Session>, ApiError> {
    let sha256 = id.sha256();
    let session = match console.sessions.get(&sha256) {
        Some(session) => session,
        None => read(console, sha256, from).await?,
    };
    match session.has_ended(console.clock.now_ms()) {
        true => Err(ApiError::unauthorized()),
        false => Ok(session),
    }
}

async fn read(console: &Console, sha256: String, from: IpAddr) -> Result<Arc<Session>, ApiError> {
    // As often as keys may be guessed, the database is asked for sessions that are not there.
    let attempt = match console.sessions.get_old(&sha256) {
        Some(_) => None,
        None => Some(console.limits.hold_attempt(from).await?),
    };
    let session = read_all(console, &[&sha256]).await?.pop();
    if session.is_none()
        && let Some(attempt) = attempt
    {
        attempt.keep();
    }
    session.ok_or_else(ApiError::unauthorized)
}

/// Reads sessions and remembers them. The next request with one that is not there is an attempt.
async fn read_all(console: &Console, sha256s: &[&str]) -> Result<Vec<Arc<Session>>, StoreError> {
    let generation = console.sessions.generation();
    let rows = store::find_sessions(console.store.db(), sha256s).await?;
    let found: Vec<_> = rows
        .into_iter()
        .map(|row| session_of(console, row))
        .collect();
    for session in &found {
        let sha256 = session.sha256.clone();
        console
            .sessions
            .insert(generation, sha256, Arc::clone(session));
    }
    if found.len() < sha256s.len() {
        let mut gone: HashSet<&str> = sha256s.iter().copied().collect();
        for session in &found {
            gone.remove(session.sha256.as_str());
        }
        console
            .sessions
            .forget(|known, _| gone.contains(known.as_str()));
    }
    Ok(found)
}

fn session_of(console: &Console, row: SessionRow) -> Arc<Session> {
    // That it was used just now may not be stored yet.
    let known = console.sessions.get_old(&row.id_sha256);
    let used = known.map_or(0, |known| known.last_used_at);
    Arc::new(Session {
        sha256: row.id_sha256,
        key: row.key.known(),
        created_at: row.created_at,
        last_used_at: row.last_used_at.max(used),
    })
}

/// Sessions of responses that last, which are read again together: a thousand open consoles would ask for one of them every few milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Lasting {
    /// When each was asked for last, by the hashes of their ids.
    asked: Mutex<HashMap<String, i64>>,
    turn: tokio::sync::Mutex<()>,
}

impl Lasting {
    /// Notes that a session is asked for.
    fn note(&self, sha256: &str, now: i64) {
        self.lock().insert(sha256.to_owned(), now);
    }

    /// Returns the sessions that were asked for of late, and forgets all others.
    fn of_late(&self, now: i64) -> Vec<String> {
        let mut asked = self.lock();
        asked.retain(|_, at| now - *at <= millis(OF_LATE));
        asked.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, i64>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the session of this id while a response to it lasts.
///
/// # Errors
/// 401 if it has ended, 503 when the database is away.
pub(crate) async fn find_again(console: &Console, id: &Token) -> Result<Arc<Session>, ApiError> {
    let sha256 = id.sha256();
    console.lasting.note(&sha256, console.clock.now_ms());
    let session = match console.sessions.get(&sha256) {
        Some(session) => session,
        None => read_lasting(console, &sha256).await?,
    };
    match session.has_ended(console.clock.now_ms()) {
        true => Err(ApiError::unauthorized()),
        false => Ok(session),
    }
}

/// Reads a session, and with it the others that are not known any more. Whoever comes meanwhile reads its own alone: a slow database would otherwise
/// make all wait for each other.
async fn read_lasting(console: &Console, sha256: &str) -> Result<Arc<Session>, ApiError> {
    let Ok(_turn) = console.lasting.turn.try_lock() else {
        let session = read_all(console, &[sha256]).await?.pop();
        return session.ok_or_else(ApiError::unauthorized);
    };
    let mut lasting = console.lasting.of_late(console.clock.now_ms());
    lasting.retain(|other| other != sha256 && console.sessions.get(other).is_none());
    let mut read = vec![sha256];
    read.extend(lasting.iter().map(String::as_str));
    let mut own = None;
    for some in read.chunks(READ_AT_ONCE) {
        let mut found = read_all(console, some).await?.into_iter();
        own = own.or_else(|| found.find(|session| session.sha256 == sha256));
    }
    own.ok_or_else(ApiError::unauthorized)
}

/// Notes that a session is used now, which is stored about once a minute, without making the request wait.
pub(crate) fn note_use(console: &Console, session: &Session) {
    let now = console.clock.now_ms();
    if now - session.last_used_at < millis(USED_STEP) {
        return;
    }
    let used = Session {
        last_used_at: now,
        ..session.clone()
    };
    let sha256 = used.sha256.clone();
    console.sessions.replace(&sha256, Arc::new(used));
    let console = console.clone();
    console.kernel.tasks.clone().spawn(async move {
        if let Err(error) = store::note_use(console.store.db(), &sha256, now).await {
            console
                .store
                .complain("storing when a session was used", &error);
        }
    });
}

/// Ends a session. Doing it twice is harmless.
///
/// # Errors
/// The database's failure: it goes on then.
pub(crate) async fn end(console: &Console, session: &Session) -> Result<(), StoreError> {
    store::delete_session(console.store.db(), &session.sha256).await?;
    console
        .sessions
        .forget(|sha256, _| *sha256 == session.sha256);
    Ok(())
}

/// Ends all sessions of a key, and takes its links back. Other nodes notice within [`MAX_AGE`](crate::MAX_AGE).
///
/// # Errors
/// The database's failure: they go on then.
pub(crate) async fn end_all(console: &Console, key: &KnownKey) -> Result<(), StoreError> {
    let transaction = console.store.begin().await?;
    // Waits for a session that is being begun with a link, which is ended, too.
    store::delete_links_of(&transaction, key).await?;
    store::delete_sessions_of(&transaction, key).await?;
    transaction.commit().await?;
    console.sessions.forget(|_, session| session.key == *key);
    Ok(())
}

/// Makes a link that signs somebody in with a key, once, and says when it expires. The token is the only copy.
///
/// # Errors
/// The database's failure.
pub(crate) async fn make_link(
    console: &Console,
    key: &KnownKey,
    lasts: Duration,
) -> Result<(Token, i64), StoreError> {
    let token = Token::make();
    let expires_at = console.clock.now_ms() + millis(lasts);
    let transaction = console.store.begin().await?;
    let sha256 = token.sha256();
    store::insert_link(&transaction, &sha256, key, expires_at).await?;
    store::bound_links(&transaction, &sha256, key, MOST_LINKS_OF_KEY).await?;
    transaction.commit().await?;
    Ok((token, expires_at))
}

/// Returns the key that a link stands for, and what that reaches, for a request that came `from` an address.
///
/// # Errors
/// When the link was used, expired or never was, when its key has ended, when the address has tried too many, or when the database fails.
pub(crate) async fn find_link(
    console: &Console,
    token: &Token,
    from: IpAddr,
) -> Result<(KnownKey, Principal), KeyRefused> {
    let attempt = console.limits.hold_attempt(from).await?;
    let row = store::find_link(console.store.db(), &token.sha256()).await?;
    let now = console.clock.now_ms();
    let lasts = now + 1..=now + millis(LONGEST_LINK + CLOCKS_DIFFER);
    let Some(row) = row.filter(|row| lasts.contains(&row.expires_at)) else {
        attempt.keep();
        return Err(KeyRefused::Unknown);
    };
    let key = row.key.known();
    match keys::authenticate_known(console, &key).await {
        Ok(principal) => Ok((key, principal)),
        Err(refused) => {
            attempt.keep();
            Err(refused)
        }
    }
}

/// Removes the sessions and links that ended, and those of a clock that was ahead.
///
/// # Errors
/// The database's failure.
pub(crate) async fn purge(base: &Base) -> Result<(), StoreError> {
    let now = base.clock.now_ms();
    let ahead = millis(CLOCKS_DIFFER);
    let created = now - millis(LONGEST)..=now + ahead;
    let used = now - millis(IDLE);
    store::purge_sessions(base.store.db(), &created, used).await?;
    let expires = now..=now + millis(LONGEST_LINK) + ahead;
    store::purge_links(base.store.db(), &expires).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_nobody_asks_for_any_more_are_forgotten() {
        let lasting = Lasting::default();
        lasting.note("a", 0);
        lasting.note("b", 1);
        lasting.note("a", 2);
        let late = millis(OF_LATE);
        let mut both = lasting.of_late(late + 1);
        both.sort();
        assert_eq!(both, ["a", "b"]);
        assert_eq!(lasting.of_late(late + 2), ["a"]);
        // A clock that went back forgets nothing.
        assert_eq!(lasting.of_late(0), ["a"]);
        assert!(lasting.of_late(late + 3).is_empty());
    }
}
