//! Quotas, where other capabilities use them. What they do themselves, `backend/accounts/tests/contract` says.

mod calls;
