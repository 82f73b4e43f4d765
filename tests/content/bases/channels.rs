//! Folders that follow channels, in processes that are killed. What else they do is tested in `colloquy-bases`.

use harness::{TestDatabase, elsewhere::eventually};
use test_routes::videos::Platform;

use super::*;

/// A process that is killed at any moment of a scan and of what follows leaves nothing out, and nothing twice: neither videos nor charges.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_leaves_nothing_out_and_nothing_twice() {
    let platform = Platform::empty();
    let ids: Vec<String> = (0..120).map(|number| format!("v{number:03}")).collect();
    let videos: Vec<(&str, Option<&str>)> = ids.iter().map(|id| (id.as_str(), None)).collect();
    for list in ["@zoo/videos", "channel/UCzoo/videos"] {
        platform.has(list, "UCzoo", &videos);
    }
    let program = platform.program();
    let settings = |config: &mut colloquy::Config| {
        config.knowledge.yt_dlp = Some(program.clone());
        config.sandbox.readable = vec![platform.folder().to_owned()];
        config.knowledge.discovery_usd = "0.01".parse().unwrap();
    };
    for wait in [0, 40, 120, 300] {
        let database = TestDatabase::sqlite();
        let server = Server::start(&database, settings).await;
        let acme = furnished_server(&server).await;
        let key = acme.key.as_str();
        let form = fields(&[
            ("name", "zoo"),
            ("type", "video_channel"),
            ("channel_url", "@zoo"),
        ]);
        let request = server.request(key, Method::POST, "/api/folders/acme/manual");
        send(request.multipart(form)).await.expect(201);
        // A job that takes its process down twice is given up, so it dies once.
        sleep(Duration::from_millis(wait)).await;
        server.kill().await;
        let server = Server::start(&database, settings).await;
        let data = async || server.get(key, &format!("/api/kb-data/{BASE}")).await;
        eventually("all videos are documents", async || {
            let data = data().await;
            let channel = &data["folder_details"][0];
            channel["counts"]["imported"] == ids.len() && channel["status"] == "synced"
        })
        .await;
        let data = data().await;
        let documents = data["documents"].as_array().unwrap();
        let mut names: Vec<_> = documents
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        let expected: Vec<String> = ids.iter().map(|id| format!("Video {id}")).collect();
        assert_eq!(names, expected);
        assert_eq!(data["budget"]["dollars"]["consumed"], "0.01");
    }
}
