//! Transactions.

use std::{fmt, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use crate::{DbRow, Dialect, Executor, Statement, StoreError, connection::Connection};

/// A transaction. Dropped, it is rolled back. When any part of it failed it cannot be committed, and its connection is
/// not used again.
pub struct Transaction {
    state: Mutex<State>,
    dialect: Dialect,
    /// How long a statement may take.
    limit: Duration,
    /// On SQLite, its turn to write, which ends after it.
    _turn: Option<OwnedSemaphorePermit>,
}

struct State {
    connection: Connection,
    open: bool,
    failed: bool,
}

impl State {
    fn note<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.failed |= result.is_err();
        result
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transaction")
    }
}

impl Transaction {
    /// Begins one.
    pub(super) async fn begin(
        mut connection: Connection,
        dialect: Dialect,
        limit: Duration,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, StoreError> {
        connection.begin().await?;
        Ok(Self {
            state: Mutex::new(State {
                connection,
                open: true,
                failed: false,
            }),
            dialect,
            limit,
            _turn: turn,
        })
    }

    /// Commits it.
    ///
    /// # Errors
    /// The database's failure, after which it may be committed all the same. When a statement of it has failed, it is
    /// rolled back; PostgreSQL would do so, too, and not say it.
    pub fn commit(self) -> BoxFuture<'static, Result<(), StoreError>> {
        self.commit_now().boxed()
    }

    fn run(&self, statement: Statement) -> BoxFuture<'_, Result<u64, StoreError>> {
        async move {
            let mut state = self.state.lock().await;
            let result = state.connection.execute(statement, self.limit).await;
            state.note(result)
        }
        .boxed()
    }

    async fn commit_now(mut self) -> Result<(), StoreError> {
        let state = self.state.get_mut();
        if state.failed || !state.connection.trusted {
            let reason = "a statement of the transaction has failed".to_owned();
            return Err(state.connection.failed(sqlx::Error::Protocol(reason)));
        }
        state.connection.commit(self.limit).await?;
        state.open = false;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if !state.open {
            return;
        }
        if state.failed {
            state.connection.trusted = false;
        }
        // One that is not trusted is closed, which rolls back as well.
        if state.connection.trusted {
            state.connection.roll_back();
        }
    }
}

impl Executor for Transaction {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn execute(
        &self,
        statement: impl Into<Statement> + Send,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.run(statement.into())
    }

    fn fetch_rows(&self, statement: Statement) -> BoxFuture<'_, Result<Vec<DbRow>, StoreError>> {
        async move {
            let mut state = self.state.lock().await;
            let result = state.connection.fetch_rows(statement, self.limit).await;
            state.note(result)
        }
        .boxed()
    }

    fn fetch_row(&self, statement: Statement) -> BoxFuture<'_, Result<Option<DbRow>, StoreError>> {
        async move {
            let mut state = self.state.lock().await;
            let result = state.connection.fetch_row(statement, self.limit).await;
            state.note(result)
        }
        .boxed()
    }
}
