//! Calls that were presumed lost and go on.

use super::{
    recovery::{completed, create},
    *,
};

// Nothing else tells its partner that a call goes on that was taken for lost.
on_each_database!(
    a_call_whose_node_is_heard_again_is_shown_as_it_goes_on,
    |database| {
        let clock = manual();
        let node = |name: &str| start_by(builder(&database).node(name).shared_clock(&clock));
        let alive = node("alive").await;
        let (acme, _) = alive.acme_and_other().await;
        let cut_off = node("cut-off").await;
        let joined = create(&alive, &acme, None).await;
        let connected = create(&alive, &acme, None).await;
        for path in [&joined, &connected] {
            let taken = calls::take(&cut_off.state, bare(path), None).await;
            taken.unwrap().unwrap();
        }
        let marked = calls::mark_ongoing(&cut_off.state, bare(&connected)).await;
        marked.unwrap();
        let states = async || {
            let joined = state(&alive, &acme, &joined).await;
            (joined, state(&alive, &acme, &connected).await)
        };
        let listed = async |state: &str| {
            let path = format!("/v2/calls?state={state}");
            let page = alive.get(&acme.key, &path).await.expect(200);
            let ids = page["data"].as_array().unwrap().iter();
            ids.map(|call| call["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let error_code = async || {
            let read = alive.get(&acme.key, &connected).await.expect(200);
            read["data"]["error_code"].clone()
        };
        clock.advance(Duration::from_secs(31));
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(states().await, (json!("error"), json!("error")));
        assert_eq!(error_code().await, "NODE_LOST");

        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(states().await, (json!("starting"), json!("ongoing")));
        assert_eq!(error_code().await, Value::Null);
        assert_eq!(listed("ongoing").await, std::slice::from_ref(&connected));
        assert_eq!(listed("error").await, [""; 0]);
        // Longer than calls are kept for a node that stays away.
        clock.advance(Duration::from_secs(660));
        assert_eq!(states().await, (json!("error"), json!("error")));
        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        alive.delete(&acme.key, &connected).await.expect(409);
        let finished = calls::finish(&cut_off.state, bare(&connected), completed()).await;
        finished.unwrap();
        assert_eq!(states().await, (json!("starting"), json!("completed")));
        alive.delete(&acme.key, &connected).await.expect(204);
        alive.stop().await;
    }
);
