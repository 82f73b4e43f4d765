//! Calls with a client on the crate `webrtc` ([`Stack::Webrtc`]): its own sockets, tasks and tracks, the library's ICE agent,
//! which nominates the path, where the server has an agent of its own, and the library's timers of DTLS, where the server
//! repeats flights by itself. Both ends encrypt, write SDP and lay out messages with the same core all the same; ends that
//! share nothing with the server are the browsers of `tests/browser`.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_is_heard_answered_and_recorded() {
    talk::converse_and_hang_up(Stack::Webrtc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_socket_leaves_the_media_alone_and_comes_back_with_its_token() {
    session::lose_the_socket_and_come_back(Stack::Webrtc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn media_moves_to_another_address_by_an_ice_restart() {
    session::restart_ice_and_converse(Stack::Webrtc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_was_cut_comes_back() {
    trouble::cut_the_network_and_come_back(Stack::Webrtc).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lossy_and_jittery_network_still_carries_a_conversation() {
    trouble::converse_on_bad_networks(Stack::Webrtc).await;
}

/// All of them connect. How soon does not hold as with the core and the server's repeats: what the server sent and was lost
/// comes again after a tenth of a second, but a flight of the client's that was lost waits for the client's own timer, which
/// is a second each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_set_up_on_networks_that_lose_any_datagram() {
    trouble::set_up_on_networks_that_lose(Stack::Webrtc, 0.1).await;
}

/// The median was 28 ms in a debug build on two shared cores. The fastest of them waited for no timer at all, and most of them for no more than a
/// repeat of the server's: those come after a tenth of a second, the client's after a whole one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn media_connects_within_a_tenth_of_a_second() {
    let stage = Stage::new().await;
    let mut times = Vec::new();
    for _ in 0..11 {
        let (_, client) = stage.join_on(Stack::Webrtc).await;
        times.push(client.connect_time().unwrap());
        client.hang_up().await.unwrap();
    }
    times.sort();
    let fastest = patience(Duration::from_millis(80)).min(Duration::from_millis(150));
    let median = patience(Duration::from_millis(150)).min(Duration::from_millis(800));
    assert!(times[0] < fastest && times[5] < median, "{times:?}");
}
