//! The server: connections, addresses and events.

use crate::access::Access;
use crate::feed::{Feed, Snapshot};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fedlink_report::report::{live_page, live_script, live_style};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

/// The most connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 512;
/// The most pages at a time that receive events.
const MAX_PAGES: usize = 64;
/// The longest time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// The longest time for which a client may not read.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// Time between two reads of the folders while a page is open.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause is so many times the time of a read, so that a read of a large study takes no more than 2 % of a
/// core from the runs beside it.
const SHARE: u32 = 50;
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Time between two signs of life to a page.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Time between two checks of a request to stop.
const STOP_PAUSE: Duration = Duration::from_millis(100);
/// The longest time for open pages to receive the last events.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// The headers of every response. The page may load nothing but its own style, script and events, and no
/// other page may show or read it.
const HEADERS: [(header::HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A request to stop.
pub type Stop = Arc<AtomicBool>;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    access: Access,
    folders: Vec<PathBuf>,
}

/// All that requests share.
struct Shared {
    access: Access,
    pages: AtomicUsize,
    snapshots: watch::Receiver<Arc<Snapshot>>,
}

impl Server {
    /// A server of folders that listens on an address.
    pub fn bind(address: SocketAddr, access: Access, folders: &[PathBuf]) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address)?, access, folders: folders.to_vec() })
    }

    /// The address of the page.
    pub fn url(&self) -> io::Result<String> {
        Ok(self.access.url(self.listener.local_addr()?))
    }

    /// Serves until `stop` is true; pages that are open then receive the last events.
    pub fn run(self, stop: &Stop) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
        let done = runtime.block_on(self.serve(stop));
        runtime.shutdown_timeout(Duration::from_secs(1));
        done
    }

    /// The same in a thread of its own.
    pub fn spawn(self, stop: Stop) -> io::Result<JoinHandle<io::Result<()>>> {
        std::thread::Builder::new().name("watch".into()).spawn(move || self.run(&stop))
    }

    async fn serve(self, stop: &Stop) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let (sender, snapshots) = watch::channel(Arc::new(Snapshot::default()));
        let shared = Arc::new(Shared { access: self.access, pages: AtomicUsize::new(0), snapshots });
        let feed =
            tokio::spawn(follow(Feed::new(&self.folders), Arc::clone(&shared), sender, Arc::clone(stop)));
        let router = Router::new()
            .route("/", get(|| async { ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], live_page()) }))
            .route(
                "/style.css",
                get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], live_style()) }),
            )
            .route(
                "/script.js",
                get(|| async { ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], live_script()) }),
            )
            .route("/events", get(events))
            .layer(from_fn_with_state(Arc::clone(&shared), guard))
            .with_state(shared);
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        while !stop.load(Ordering::SeqCst) {
            let accepted = tokio::time::timeout(STOP_PAUSE, listener.accept()).await;
            let stream = match accepted {
                Err(_) => continue,
                Ok(Ok((stream, _))) => stream,
                // Too many files are open, for example: those of other connections will be closed.
                Ok(Err(_)) => {
                    tokio::time::sleep(STOP_PAUSE).await;
                    continue;
                }
            };
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else { continue };
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(WRITE_TIME));
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                // An error is that of the client, who has left or was dropped.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME)
                    .keep_alive(false)
                    .max_buf_size(64 << 10)
                    .serve_connection(TokioIo::new(Box::pin(stream)), service)
                    .await;
                drop(slot);
            });
        }
        // The last events for open pages.
        let _ = tokio::time::timeout(LAST_EVENTS, feed).await;
        tokio::time::sleep(STOP_PAUSE).await;
        Ok(())
    }
}

/// Reads the folders while a page is open.
async fn follow(mut feed: Feed, shared: Arc<Shared>, sender: watch::Sender<Arc<Snapshot>>, stop: Stop) {
    loop {
        let is_last = stop.load(Ordering::SeqCst);
        let mut pause = PAUSE;
        if shared.pages.load(Ordering::SeqCst) > 0 {
            // A network disk may take its time.
            let read = tokio::task::spawn_blocking(move || {
                let started = Instant::now();
                let snapshot = feed.read();
                (feed, snapshot, started.elapsed())
            });
            let Ok((own, snapshot, taken)) = read.await else { return };
            feed = own;
            pause = (taken * SHARE).clamp(PAUSE, LONGEST_PAUSE);
            if let Some(snapshot) = snapshot {
                sender.send_replace(Arc::new(snapshot));
            }
        }
        if is_last {
            return;
        }
        let until = Instant::now() + pause;
        while Instant::now() < until && !stop.load(Ordering::SeqCst) {
            tokio::time::sleep(STOP_PAUSE).await;
        }
    }
}

/// Refuses requests that were meant for another server or lack the token, and adds the headers.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let is_asset = ["/style.css", "/script.js"].contains(&request.uri().path());
    let refused = |status: StatusCode, text: &'static str| (status, text).into_response();
    let mut response = if !shared.access.knows_host(host) {
        refused(
            StatusCode::MISDIRECTED_REQUEST,
            "This server is not known by the name in the Host header. Open the address that fedlink watch \
             printed.\n",
        )
    } else if !is_asset && !shared.access.admits(request.uri().query()) {
        refused(
            StatusCode::UNAUTHORIZED,
            "The token is missing or wrong. Open the address that fedlink watch printed, with its token.\n",
        )
    } else {
        next.run(request).await
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A page that receives events; it is counted while it is open.
struct Page {
    shared: Arc<Shared>,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    version: Option<u64>,
}

impl Page {
    /// None if there are too many.
    fn new(shared: Arc<Shared>) -> Option<Self> {
        let mut snapshots = shared.snapshots.clone();
        snapshots.mark_changed();
        let page = Self { snapshots, version: None, shared };
        let before = page.shared.pages.fetch_add(1, Ordering::SeqCst);
        (before < MAX_PAGES).then_some(page)
    }

    /// The next text: the parts that have changed, or a sign of life. None if the server ends.
    async fn next(&mut self) -> Option<Bytes> {
        match tokio::time::timeout(SIGN_OF_LIFE, self.snapshots.changed()).await {
            Err(_) => Some(Bytes::from_static(b": alive\n\n")),
            Ok(Err(_)) => None,
            Ok(Ok(())) => {
                let snapshot = Arc::clone(&self.snapshots.borrow_and_update());
                let text = snapshot.since(self.version.unwrap_or(0));
                self.version = Some(snapshot.version);
                Some(Bytes::from(text))
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.shared.pages.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn events(State(shared): State<Arc<Shared>>) -> Response {
    let Some(page) = Page::new(shared) else {
        let text = "Too many pages are open. Close one and try again.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let texts = futures_util::stream::unfold(page, |mut page| async move {
        let text = page.next().await?;
        Some((Ok::<Bytes, Infallible>(text), page))
    });
    ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], Body::from_stream(texts)).into_response()
}
