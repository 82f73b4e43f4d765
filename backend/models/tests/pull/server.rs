//! A web server with files, which answers as badly as it is told to.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// As it should be.
    Well,
    /// With this status and nothing else.
    Status(u16),
    /// Well, but it breaks off once so many bytes have arrived.
    BreaksOff(usize),
    /// Well, but it breaks off once half of it has arrived.
    BreaksOffHalfWay,
    /// With all of it, whatever is asked for; it breaks off once so many bytes have arrived.
    WholeThatBreaksOff(usize),
    /// With all of it, whatever is asked for.
    Whole,
    /// With the part that begins so many bytes before the one that is asked for.
    PartBefore(usize),
    /// With the part that is asked for, without saying which one it is.
    PartWithoutItsPlace,
    /// Not at all, while the connection stays.
    Never,
    /// Without an end.
    Endless,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Server {
    served: Arc<Mutex<ServedFiles>>,
    /// How many bytes of the current transfer have arrived.
    pub(crate) arrived: watch::Sender<u64>,
}

#[derive(Default)]
struct ServedFiles {
    files: HashMap<String, Vec<u8>>,
    next: HashMap<String, VecDeque<Answer>>,
    always: HashMap<String, Answer>,
    asked: Vec<(String, Option<u64>)>,
    sent: usize,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            served: Arc::default(),
            arrived: watch::Sender::new(0),
        }
    }

    /// Begins to listen, and gives its address.
    pub(crate) async fn start(&self) -> String {
        let app = Router::new().fallback(serve).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}/")
    }

    pub(crate) fn put(&self, path: &str, contents: &[u8]) {
        let mut served = self.served.lock().unwrap();
        served.files.insert(path.to_owned(), contents.to_vec());
    }

    /// How the next requests for this path are answered.
    pub(crate) fn next(&self, path: &str, answers: &[Answer]) {
        let mut served = self.served.lock().unwrap();
        let next = served.next.entry(path.to_owned()).or_default();
        next.extend(answers);
    }

    /// How all other requests for this path are answered from now on.
    pub(crate) fn always(&self, path: &str, answer: Answer) {
        let mut served = self.served.lock().unwrap();
        served.always.insert(path.to_owned(), answer);
    }

    /// The path and the first byte of each request since this was last asked.
    pub(crate) fn asked(&self) -> Vec<(String, Option<u64>)> {
        std::mem::take(&mut self.served.lock().unwrap().asked)
    }

    /// The first byte that each request asked for.
    pub(crate) fn asked_from(&self) -> Vec<Option<u64>> {
        self.asked().into_iter().map(|(_, from)| from).collect()
    }

    /// How much an endless answer has sent.
    pub(crate) fn sent(&self) -> usize {
        self.served.lock().unwrap().sent
    }

    /// A body of this length that ends before its time, once `after` bytes of it are where they should be.
    fn broken(&self, from: usize, rest: &[u8], after: usize) -> Body {
        let after = after.min(rest.len());
        let there = Bytes::copy_from_slice(&rest[..after]);
        let mut arrived = self.arrived.subscribe();
        let wanted = (from + after) as u64;
        let gone = async move {
            let _ = arrived.wait_for(|arrived| *arrived == wanted).await;
            Err(io::Error::other("gone"))
        };
        Body::from_stream(stream::once(async { Ok(there) }).chain(stream::once(gone)))
    }

    fn endless(&self) -> Body {
        let server = self.clone();
        let piece = Bytes::from_static(&[7; 16_384]);
        let pieces = stream::repeat(piece).map(move |piece| {
            server.served.lock().unwrap().sent += piece.len();
            Ok::<_, Infallible>(piece)
        });
        Body::from_stream(pieces)
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let range = request.headers().get(header::RANGE).map(|range| {
        let text = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
        text.strip_suffix('-').unwrap().parse::<u64>().unwrap()
    });
    let (answer, file) = {
        let mut served = server.served.lock().unwrap();
        served.asked.push((path.clone(), range));
        let next = served.next.get_mut(&path).and_then(VecDeque::pop_front);
        let always = served.always.get(&path).copied();
        let answer = next.or(always).unwrap_or(Answer::Well);
        (answer, served.files.get(&path).cloned())
    };
    match answer {
        Answer::Status(status) => return StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Never => std::future::pending().await,
        Answer::Endless => return Response::new(server.endless()),
        _ => {}
    }
    let Some(whole) = file else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let asked = usize::try_from(range.unwrap_or(0)).unwrap();
    let from = match answer {
        Answer::Whole | Answer::WholeThatBreaksOff(_) => 0,
        Answer::PartBefore(bytes) => asked - bytes,
        _ => asked,
    };
    if from >= whole.len() && from > 0 {
        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    }
    let rest = &whole[from..];
    let body = match answer {
        Answer::BreaksOff(after) | Answer::WholeThatBreaksOff(after) => {
            server.broken(from, rest, after)
        }
        Answer::BreaksOffHalfWay => server.broken(from, rest, rest.len() / 2),
        _ => Body::from(rest.to_vec()),
    };
    let mut answer_to_it = Response::new(body);
    let headers = answer_to_it.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(rest.len()));
    if from > 0 {
        if !matches!(answer, Answer::PartWithoutItsPlace) {
            let range = format!("bytes {from}-{}/{}", whole.len() - 1, whole.len());
            headers.insert(header::CONTENT_RANGE, range.parse().unwrap());
        }
        *answer_to_it.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    answer_to_it
}
