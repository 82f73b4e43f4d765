//! Files that are made to take a server down.

use std::io::Cursor;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy::{jobs, messaging::Complete};
use harness::{app::send, elsewhere::until, eventually, process::Server, upstream::Script};
use ogg::{PacketReader, PacketWriteEndInfo, PacketWriter};
use reqwest::Method;

use super::{audio::recorded, *};

/// Bits as Vorbis packs them, from the lowest on.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn push(&mut self, value: u32, bits: usize) {
        for bit in 0..bits {
            if self.count.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().unwrap();
            *last |= ((value >> bit & 1) as u8) << (self.count % 8);
            self.count += 1;
        }
    }
}

/// The setup header of 256 codebooks, each of which takes 20 bytes here and more than 12 MB in a decoder.
fn greedy_setup() -> Vec<u8> {
    const ENTRIES: u32 = 128 * 1024;
    const LENGTH: u32 = 17;
    let mut bits = Bits::default();
    for byte in b"\x05vorbis" {
        bits.push((*byte).into(), 8);
    }
    bits.push(255, 8);
    for _ in 0..256 {
        bits.push(0x56_4342, 24);
        bits.push(24, 16);
        bits.push(ENTRIES, 24);
        // All code words have the same length.
        bits.push(1, 1);
        bits.push(LENGTH - 1, 5);
        bits.push(ENTRIES, 18);
        // A table of one value for all dimensions.
        bits.push(1, 4);
        bits.push(0, 32);
        bits.push(0, 32);
        bits.push(0, 4);
        bits.push(0, 1);
        bits.push(1, 1);
    }
    bits.bytes
}

/// A recording of Vorbis with another setup header, base64.
fn crafted() -> String {
    let sound = recorded("sine=duration=0.5", &["-c:a", "libvorbis"]);
    let mut packets = PacketReader::new(Cursor::new(STANDARD.decode(sound).unwrap()));
    let mut file = PacketWriter::new(Vec::new());
    for index in 0.. {
        let Some(packet) = packets.read_packet().unwrap() else {
            break;
        };
        let data = if index == 2 {
            greedy_setup()
        } else {
            packet.data.clone()
        };
        let end = match (packet.last_in_stream(), packet.last_in_page()) {
            (true, _) => PacketWriteEndInfo::EndStream,
            (_, true) => PacketWriteEndInfo::EndPage,
            _ => PacketWriteEndInfo::NormalPacket,
        };
        let granules = packet.absgp_page();
        file.write_packet(data, 7, end, granules).unwrap();
    }
    STANDARD.encode(file.into_inner())
}

fn spoken(file: &str) -> Value {
    let character = json!({"description": "{}", "personality": "You are Ada."});
    question(
        json!([voiced("m1", "a")]),
        json!({"audio_files": {"a": file}, "character": character}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_asks_for_gigabytes_fails_alone_and_once() {
    let database = TestDatabase::sqlite();
    let builder = TestApp::builder(&database).quick_worker();
    let app = builder.with_decoder().start().await;
    let (acme, _) = app.acme_and_other().await;
    let path = asked(&app, &acme.key, spoken(&crafted())).await;
    let failed = ended(&app, &acme.key, &path).await;
    let reason = json!({
        "code": "audio_unreadable",
        "message": "An audio file cannot be read: it takes too much memory",
    });
    assert_eq!(
        (&failed["state"], &failed["error"]),
        (&json!("failed"), &reason)
    );
    let id = path.rsplit_once('/').unwrap().1;
    let db = app.app.store.db();
    let job = async || jobs::find::<Complete>(db, id).await.unwrap().unwrap();
    // The completion ends a moment before its job does.
    eventually("the job ended", async || job().await.state == "done").await;
    let job = job().await;
    assert_eq!((job.attempts, job.fence), (1, 1));
    app.stop().await;
}

/// The program that a server runs for it is its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_outlives_what_its_decoder_does_not() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text("to the left"));
    let server = Server::start(&TestDatabase::sqlite(), |config| {
        upstream.configure(config);
    })
    .await;
    let acme = server.partner("acme").await;
    let ask = async |file: &str| {
        let request = server.request(&acme.key, Method::POST, PATH);
        let accepted = send(request.json(&spoken(file))).await.expect(200);
        let path = accepted["id"].as_str().unwrap().to_owned();
        until("it ends", is_over, async || {
            server.get(&acme.key, &path).await
        })
        .await
    };
    let failed = ask(&crafted()).await;
    assert_eq!(failed["error"]["code"], "audio_unreadable", "{failed}");
    let tone = recorded("sine=duration=0.5", &["-c:a", "libvorbis"]);
    let heard = ask(&tone).await;
    assert_eq!(heard["state"], "completed", "{heard}");
    assert_eq!(heard["output"]["messages"][0]["text"], "to the left");
}
